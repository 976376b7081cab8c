/** The new-agent form: the first prompt, then where the agent works and how. Everything else is under Advanced. */
import { Link } from '@tanstack/react-router';
import { type FormEvent, type KeyboardEvent, useEffect, useId, useRef } from 'react';
import { errorMessage } from '../../api/client.ts';
import { useSession } from '../../api/session.ts';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { isModEnter, MOD } from '../../ui/keys.ts';
import { Screen } from '../../ui/screen.tsx';
import { Empty } from '../../ui/states.tsx';
import {
  Advanced,
  BranchField,
  CommandField,
  type FormState,
  MainField,
  NodeField,
  PermissionField,
  WhereField,
} from './fields.tsx';
import { toCommand } from './form.ts';
import { PresetField, PresetNotice } from './presets.tsx';
import { RepositoryField } from './repository.tsx';
import { useNewAgent } from './use-new-agent.ts';

export function NewAgent() {
  const state = useNewAgent();
  return state.has_no_nodes ? <NoNodes /> : <NewAgentForm state={state} />;
}

const reasons = {
  nodes: 'Looking for nodes.',
  repositories: 'Searching for repositories. You can also enter a path.',
};

function NewAgentForm({ state }: { state: ReturnType<typeof useNewAgent> }) {
  const { form, nodes, presets, assumed_name, submit, isPending, waits_for } = state;
  const waiting_id = useId();
  const { draft, problems, shape, change } = form;
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    submit();
  };
  const onKey = (event: KeyboardEvent) => {
    if (isModEnter(event.nativeEvent)) {
      event.preventDefault();
      submit();
    }
  };
  return (
    <Screen title="New agent" back={{ to: '/agents', label: 'agents' }}>
      <form
        ref={useFocusOnProblem(isPending)}
        onSubmit={onSubmit}
        onKeyDown={onKey}
        className="flex max-w-page flex-col gap-3 p-3 md:p-4"
      >
        <MainField form={form} />
        <div className="grid grid-cols-[9fr_11fr] items-start gap-x-3 gap-y-2 md:grid-cols-4">
          <PresetField
            presets={presets.data}
            error={problems.preset ?? (presets.error ? errorMessage(presets.error) : undefined)}
            chosen={draft.preset}
            assumed_name={assumed_name}
            node_id={draft.node_id}
            className="col-span-2 md:col-span-1"
            onChoose={(preset) => change({ preset })}
          />
          <RepositoryField form={form} className="col-span-2 min-w-0" />
          <BranchField form={form} />
          <WhereField form={form} />
          <NodeField form={form} nodes={nodes} />
          <PermissionField form={form} className="md:col-span-2" />
        </div>
        <PresetNotice preset={form.preset} />
        {shape.acp && shape.needs_command && <CommandField form={form} />}
        {problems.form && (
          <p role="alert" className="text-failed">
            {problems.form}
          </p>
        )}
        <div className="flex items-center gap-3">
          <Button
            type="submit"
            variant="primary"
            busy={isPending}
            disabled={waits_for !== null}
            aria-describedby={waiting_id}
          >
            {isPending ? 'Starting…' : 'Start agent'}
          </Button>
          <span id={waiting_id} role="status" className="text-muted text-sm empty:sr-only">
            {waits_for && reasons[waits_for]}
          </span>
          {waits_for === null && (
            <span className="hidden text-muted text-sm md:pointer-fine:inline">{MOD} ⏎</span>
          )}
        </div>
        <Preview form={form} />
        <Advanced form={form} />
      </form>
    </Screen>
  );
}

/** Shown if agents cannot run on the machine of the service, and no other machine is registered. */
function NoNodes() {
  const is_root = useSession()?.user.role === 'root';
  return (
    <Screen title="New agent" back={{ to: '/agents', label: 'agents' }}>
      <Empty title="Agents run on nodes, and there are no nodes yet.">
        {is_root ? (
          <Link to="/nodes" className={buttonClass('primary')}>
            Open Nodes
          </Link>
        ) : (
          <p className="text-muted">Ask a root user to register one.</p>
        )}
      </Empty>
    </Screen>
  );
}

/** The same as a command, in one line. */
function Preview({ form }: { form: FormState }) {
  const command = toCommand(form.draft, form.shape, form.name);
  return (
    <div className="flex min-w-0 items-center gap-2">
      <code title={command} className="min-w-0 flex-1 truncate font-mono text-muted text-sm">
        {command}
      </code>
      <Copy text={command} />
    </div>
  );
}

/** After a request that failed, moves the focus to the first field with an error. */
function useFocusOnProblem(isPending: boolean) {
  const form = useRef<HTMLFormElement>(null);
  const was_pending = useRef(false);
  useEffect(() => {
    if (was_pending.current && !isPending) {
      form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
    }
    was_pending.current = isPending;
  }, [isPending]);
  return form;
}
