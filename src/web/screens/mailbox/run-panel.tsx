/** What the mailbox adds to the page of a run: its mail, and its time triggers while it can have some. */
import type { RunPanelProps } from '../../feature.ts';
import { RunMail } from './run-mail.tsx';
import { RunTriggers } from './run-triggers.tsx';

export function RunPanel(props: RunPanelProps) {
  const { run, live, members } = props;
  return (
    <>
      <RunMail {...props} />
      {live && <RunTriggers run={run} members={members} />}
    </>
  );
}
