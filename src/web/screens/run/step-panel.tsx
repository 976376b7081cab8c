/** One step: its prompt, its result, and the commands that it accepts. */
import { useQueryClient } from '@tanstack/react-query';
import { Ellipsis } from 'lucide-react';
import { useState } from 'react';
import { isRunOver } from '../../../features/runs/rules/run.ts';
import { useAct } from '../../api/act.ts';
import { call, errorMessage } from '../../api/client.ts';
import { readAgainOnConflict } from '../../api/conflict.ts';
import { keys } from '../../api/keys.ts';
import type { RunRecord } from '../../api/queries.ts';
import { Button, IconButton } from '../../ui/button.tsx';
import { CommandForm } from '../../ui/command-form.tsx';
import { Menu } from '../../ui/menu.tsx';
import { useOnline } from '../../ui/online.ts';
import { Duration } from '../../ui/time.tsx';
import { showToast } from '../../ui/toast.tsx';
import type { CommandInput } from '../../ui/values.ts';
import { type StepCommand, type StepRecord, stepCommands } from './facts.ts';
import { RunStatus } from './status.tsx';
import { Json } from './value.tsx';

const labels: Record<StepCommand, string> = {
  start: 'Start step',
  complete: 'Complete step…',
  fail: 'Fail step…',
};
const results: Record<StepCommand, string> = {
  start: 'started',
  complete: 'completed',
  fail: 'failed',
};

const none: ReturnType<typeof stepCommands> = { main: [], more: [] };

type Sending = {
  command: StepCommand;
  /** Of the step that the page shows. */
  started_at: string | null;
} & CommandInput;

interface StepProps {
  run: RunRecord;
  step: StepRecord;
  /** Called before a command, so that the page keeps showing this step. */
  onUse: () => void;
}

export function StepPanel({
  run,
  step,
  needs_you,
  onUse,
}: StepProps & {
  /** The step or its agent waits for the user. */
  needs_you: boolean;
}) {
  return (
    <section
      aria-label={`Step ${step.step_key}`}
      className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3"
    >
      <header className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="min-w-0 truncate font-medium" title={step.step_key}>
          {step.step_key}
        </h2>
        <span className="flex items-center gap-2 text-sm">
          <RunStatus status={step.status} needs_you={needs_you} />
          {step.started_at && <Duration from={step.started_at} to={step.ended_at} />}
          {step.max_attempts > 1 && step.attempt > 0 && (
            <span className="text-muted">
              attempt {step.attempt}
              {/* A resumed run may try again as often. */}
              {step.attempt <= step.max_attempts && ` of ${step.max_attempts}`}
            </span>
          )}
        </span>
      </header>
      <StepFacts step={step} />
      <StepCommands run={run} step={step} onUse={onUse} />
      {step.output !== null && step.output !== undefined && <Json label="Output" value={step.output} open />}
      {step.input !== null && step.input !== undefined && <Json label="Input" value={step.input} />}
    </section>
  );
}

function StepFacts({ step: { prompt, depends_on, when, error_text, status } }: { step: StepRecord }) {
  return (
    <>
      {prompt && (
        <p dir="auto" className="max-h-40 overflow-y-auto whitespace-pre-wrap break-words">
          {prompt}
        </p>
      )}
      {(depends_on.length > 0 || when === 'always') && (
        <p className="break-words text-muted text-sm">
          {depends_on.length > 0 && <>after {depends_on.slice(0, 20).join(', ')}</>}
          {depends_on.length > 20 && ` and ${depends_on.length - 20} more`}
          {when === 'always' && ', even if they fail'}
        </p>
      )}
      {error_text && (
        <p
          className={`max-h-40 overflow-y-auto whitespace-pre-wrap break-words rounded px-2 py-1 ${
            status === 'input_required' ? 'bg-marked' : 'bg-removed text-failed'
          }`}
        >
          {error_text}
        </p>
      )}
    </>
  );
}

function StepCommands({ run, step, onUse }: StepProps) {
  const [open, setOpen] = useState<StepCommand | null>(null);
  const act = useStepCommand(run, step, () => setOpen(null));
  const { main, more } = isRunOver(run) ? none : stepCommands(step, run.spec);
  const press = (command: StepCommand) => {
    act.reset();
    onUse();
    if (command === 'start') act.mutate({ command, started_at: step.started_at });
    else setOpen(command);
  };
  return (
    <>
      {main.length + more.length > 0 && (
        <div className="flex flex-wrap items-center gap-2">
          <CommandButtons
            commands={main}
            sending={act.isPending ? act.variables.command : null}
            open={open}
            onPress={press}
          />
          {more.length > 0 && (
            <Menu
              trigger={<IconButton label="More actions for this step" icon={<Ellipsis aria-hidden />} />}
              items={more.map((command) => ({
                label: command === 'complete' ? 'Complete manually…' : labels[command],
                danger: command === 'fail',
                onSelect: () => press(command),
              }))}
            />
          )}
        </div>
      )}
      {open && open !== 'start' ? (
        <CommandForm
          key={open}
          command={open}
          draft={`step-${open}.${run.id}.${step.step_key}`}
          busy={act.isPending}
          error={act.error}
          onSend={(input) => act.mutateAsync({ command: open, started_at: step.started_at, ...input })}
        />
      ) : (
        act.error && (
          <p role="alert" className="text-failed">
            {errorMessage(act.error)}
          </p>
        )
      )}
    </>
  );
}

function CommandButtons({
  commands,
  sending,
  open,
  onPress,
}: {
  commands: readonly StepCommand[];
  sending: StepCommand | null;
  open: StepCommand | null;
  onPress: (command: StepCommand) => void;
}) {
  const online = useOnline();
  return commands.map((command, at) => (
    <Button
      key={command}
      variant={command === 'fail' ? 'danger' : at === 0 ? 'primary' : 'plain'}
      busy={sending === command}
      disabled={sending !== null || !online}
      title={online ? undefined : 'You are offline'}
      aria-expanded={command === 'start' ? undefined : open === command}
      onClick={() => onPress(command)}
    >
      {labels[command]}
    </Button>
  ));
}

function useStepCommand(run: RunRecord, step: StepRecord, onDone: () => void) {
  const queries = useQueryClient();
  // The command may change other steps and the run.
  const changed = [keys.steps(run.id), keys.run(run.id)];
  return useAct(
    (sending: Sending, idempotency_key) =>
      readAgainOnConflict(queries, changed, send(run, step.step_key, sending, idempotency_key)),
    (record, { command }) => {
      onDone();
      queries.setQueryData<StepRecord[]>(keys.steps(run.id), (steps) =>
        steps?.map((step) => (step.step_key === record.step_key ? record : step)),
      );
      for (const queryKey of changed) void queries.invalidateQueries({ queryKey });
      showToast(`${record.step_key} ${results[command]}`);
    },
  );
}

function send(
  run: RunRecord,
  step_key: string,
  { command, started_at, ...value }: Sending,
  idempotency_key: string,
): Promise<StepRecord> {
  const params = { team_id: run.team_id, run_id: run.id, step_key };
  const { output, error_text = '' } = value;
  switch (command) {
    case 'start':
      return call('startStep', { params, idempotency_key });
    case 'complete':
      return call('completeStep', { params, body: { output, started_at }, idempotency_key });
    case 'fail':
      return call('failStep', { params, body: { error_text, started_at }, idempotency_key });
  }
}
