/** The side panel of a conversation: plan, changed files, usage and settings. On a phone, a button opens it. */
import { PanelRight } from 'lucide-react';
import { memo, useState } from 'react';
import { bodyText } from '../../../../acp/transcript/parts.ts';
import type { View } from '../../../../acp/transcript/transcript.ts';
import { PREVIEW_VERSION } from '../../../../acp/v2/version.ts';
import { escapeHidden } from '../../../../core/visible.ts';
import type { AgentRecord } from '../../../api/queries.ts';
import { Contained } from '../../../ui/contained.tsx';
import { LazyDialog } from '../../../ui/lazy-dialog.tsx';
import { usePainted } from '../../../ui/painted.ts';
import { usedPercent } from '../../../ui/usage.ts';
import { Branch } from '../../agents/facts.tsx';
import { getProgram } from '../../agents/order.ts';
import { Files } from './files.tsx';
import { FolderPath } from './folder-path.tsx';
import { Plan } from './plan.tsx';
import { AgentSettings } from './settings.tsx';
import { UsageGauge } from './usage.tsx';
import { useWidth } from './width.tsx';

interface SideProps {
  agent: AgentRecord;
  view: View;
}

/** The panel at the right of a wide screen. */
export function SidePanel({ agent, view }: SideProps) {
  const { width, handle } = useWidth();
  // The conversation is painted first.
  const shows_details = usePainted();
  return (
    <>
      {handle}
      <aside
        aria-label="About this conversation"
        style={{ width }}
        className="scroll-y hidden shrink-0 border-line border-l p-3 lg:block"
      >
        {shows_details && <Details agent={agent} view={view} />}
      </aside>
    </>
  );
}

/** On a narrow screen, a button with the progress, which opens the panel. */
export function SideButton({ agent, view }: SideProps) {
  const [open, setOpen] = useState(false);
  const { plan, usage } = view;
  const now = plan?.entries.find(({ status }) => status === 'in_progress')?.content;
  const has_plan = plan !== null && plan.total > 0;
  return (
    <>
      <button
        type="button"
        onClick={() => setOpen(true)}
        className="tap ml-auto flex min-w-0 items-center gap-1.5 text-left lg:hidden"
      >
        <span className="min-w-0 truncate">
          {has_plan ? `Plan ${plan.done}/${plan.total}` : 'Files and settings'}
          {has_plan && now && ` · ${escapeHidden(now)}`}
        </span>
        {usage && usage.size > 0 && <span className="shrink-0">· {usedPercent(usage)}%</span>}
        <PanelRight aria-hidden className="size-4 shrink-0" />
      </button>
      <LazyDialog open={open} onClose={() => setOpen(false)} title={agent.name}>
        <Details agent={agent} view={view} />
      </LazyDialog>
    </>
  );
}

/** A title that an agent makes of the first words of the prompt adds nothing. */
function repeatsPrompt(title: string, items: View['items']): boolean {
  const first = items.find((item) => item.kind === 'user_message');
  const letters = (text: string) => text.replace(/[^\p{L}\p{N}]+/gu, '').toLowerCase();
  return first?.kind === 'user_message' && letters(bodyText(first.body)).startsWith(letters(title));
}

/** Not rendered again for new messages, which change nothing here. */
const Details = memo(
  function Details({ agent, view }: SideProps) {
    return (
      <div className="flex flex-col gap-4">
        {view.title !== null && !repeatsPrompt(view.title, view.items) && (
          <p className="break-words font-medium">{view.title}</p>
        )}
        <Contained retryOn={view}>
          <Plan plan={view.plan} />
        </Contained>
        <Contained retryOn={view}>
          <Files agent={agent} turn={view.turns.at(-1)} />
        </Contained>
        <Contained retryOn={view}>
          <UsageGauge usage={view.usage} />
        </Contained>
        <Contained retryOn={view}>
          <AgentSettings agent={agent} modes={view.modes} options={view.config_options} />
        </Contained>
        <section aria-label="Environment">
          <h2 className="font-medium">Environment</h2>
          <p className="text-muted">
            {view.agent ? `${view.agent.title ?? view.agent.name} ${view.agent.version}` : getProgram(agent)}
            {agent.node_id !== 'main' && ` on node ${agent.node_id}`}
            {view.protocol_version === PREVIEW_VERSION && `, ACP version ${PREVIEW_VERSION} (preview)`}
          </p>
          <div className="text-muted">
            <Branch agent={agent} />
          </div>
          <FolderPath path={agent.workdir} />
        </section>
      </div>
    );
  },
  (a, b) =>
    a.agent === b.agent &&
    (
      ['title', 'plan', 'turns', 'usage', 'modes', 'config_options', 'agent', 'protocol_version'] as const
    ).every((key) => a.view[key] === b.view[key]),
);
