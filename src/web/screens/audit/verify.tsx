/** Whether the audit log is as it was written, asked of the service, and the answer in a line of its own. */
import { useMutation } from '@tanstack/react-query';
import { CircleAlert, CircleCheck, ShieldCheck } from 'lucide-react';
import { type Answered, call, wordsOf } from '../../api/client.ts';
import { Button } from '../../ui/button.tsx';

/** The button and the line below the toolbar, which share what was found. */
export function useVerify() {
  const verify = useMutation({ mutationFn: () => call('verifyAudit') });
  const button = (
    <Button icon={<ShieldCheck aria-hidden />} busy={verify.isPending} onClick={() => verify.mutate()}>
      Verify
    </Button>
  );
  const found = (
    <p role="status" className="w-full text-sm empty:hidden">
      {verify.error && <span className="text-failed">Not verified: {wordsOf(verify.error)}</span>}
      {verify.data && <Verdict {...verify.data} />}
    </p>
  );
  return { button, found };
}

function Verdict({ records, broken_id, head }: Answered<'verifyAudit'>) {
  const sound = broken_id === null;
  const Icon = sound ? CircleCheck : CircleAlert;
  return (
    <>
      <Icon aria-hidden className={`mr-1 inline size-4 ${sound ? 'text-completed' : 'text-failed'}`} />
      {sound
        ? `Chain intact: ${records} records.`
        : `Record ${broken_id} does not follow from what stands before it. ${records} records before it are sound.`}{' '}
      <span className="break-all text-muted">
        Head <code>{head}</code>
      </span>
    </>
  );
}
