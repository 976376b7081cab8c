/** Verifies the audit log's hash chain, and shows the result until the next time. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, ShieldCheck } from 'lucide-react';
import { type Answered, call, errorMessage } from '../../api/client.ts';
import { keys } from '../../api/keys.ts';
import { Button } from '../../ui/button.tsx';
import { ShortAgo } from '../../ui/time.tsx';

interface Verified extends Answered<'verifyAudit'> {
  at: string;
}

/** The button, and the line with its result for the toolbar. */
export function useVerify() {
  const queries = useQueryClient();
  // Written by the button alone, and kept while the page is open.
  const { data: verified } = useQuery<Verified>({
    queryKey: keys.audit_verified,
    enabled: false,
    gcTime: Number.POSITIVE_INFINITY,
  });
  const verify = useMutation({
    mutationFn: () => call('verifyAudit'),
    onSuccess: (answer) =>
      queries.setQueryData<Verified>(keys.audit_verified, { ...answer, at: new Date().toISOString() }),
  });
  const is_intact = verified?.broken_id === null;
  const button = (
    <Button
      icon={is_intact ? <CircleCheck aria-hidden className="text-completed" /> : <ShieldCheck aria-hidden />}
      busy={verify.isPending}
      title="Verify the whole log"
      onClick={() => verify.mutate()}
    >
      {is_intact ? (
        <span>
          Verified {verified.records} records, <ShortAgo at={verified.at} /> ago
        </span>
      ) : (
        'Verify log'
      )}
    </Button>
  );
  const result = (
    <p role="status" className="w-full text-sm empty:hidden">
      {verify.error && (
        <span className="text-failed">The log could not be verified: {errorMessage(verify.error)}</span>
      )}
      {verified && (verify.data || !is_intact) && <Verdict {...verified} />}
    </p>
  );
  return { button, result };
}

function Verdict({ records, broken_id, head }: Verified) {
  const sound = broken_id === null;
  const Icon = sound ? CircleCheck : CircleAlert;
  return (
    <>
      <Icon aria-hidden className={`mr-1 inline size-4 ${sound ? 'text-completed' : 'text-failed'}`} />
      {sound
        ? `The log is intact: ${records} records.`
        : `Record ${broken_id} was changed, or records before it are missing. The first ${records} records are intact.`}{' '}
      <span className="break-all text-muted">
        Hash of the last record (head): <code>{head}</code>
      </span>
    </>
  );
}
