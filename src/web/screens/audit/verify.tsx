/** Verifies the audit log's hash chain, and shows the result. */
import { useMutation } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, ShieldCheck } from 'lucide-react';
import { type Answered, call, errorMessage } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';

/** The button, and the line with its result for the toolbar. */
export function useVerify() {
  const verify = useMutation({ mutationFn: () => call('verifyAudit') });
  const button = (
    <Button icon={<ShieldCheck aria-hidden />} busy={verify.isPending} onClick={() => verify.mutate()}>
      Verify log
    </Button>
  );
  const result = (
    <p role="status" className="w-full text-sm empty:hidden">
      {verify.error && (
        <span className="text-failed">The log could not be verified: {errorMessage(verify.error)}</span>
      )}
      {verify.data && <Verdict {...verify.data} />}
    </p>
  );
  return { button, result };
}

function Verdict({ records, broken_id, head }: Answered<'verifyAudit'>) {
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
