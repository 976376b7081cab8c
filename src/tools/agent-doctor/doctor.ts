/**
 * `svc agents doctor`: tests an ACP agent, given its command, in a temporary folder. It needs no plane and no login. Before
 * it exits, it kills every process that it started, unless it is killed with SIGKILL itself.
 */
import { newSecret } from '../../base/ids.ts';
import { findPreset } from '../../features/presets/rules/catalog.ts';
import { type Preset, permissionEnv, permissionSessionModes } from '../../features/presets/rules/preset.ts';
import { limits } from '../limits.ts';
import { Examination } from './examination.ts';
import { emptyStdoutFacts } from './frames.ts';
import { type AgentName, guessAgent } from './known-agents.ts';
import { Leftovers } from './leftovers.ts';
import type { ModelSettings } from './model/agent-settings.ts';
import type { ModelServer } from './model/server.ts';
import { type CheckName, type Report, totalGrade } from './report.ts';
import { Workspace } from './workspace.ts';

export interface DoctorOptions {
  argv: readonly [string, ...string[]];
  /** The environment of this program. */
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** Null: guessed from the command. */
  agent?: AgentName | null;
  /** Starts the agent the way the plane starts this preset; null: the preset that the command is recognized as. */
  preset?: Preset | null;
  /** Use the scripted model instead of the agent's own. */
  scripted?: boolean;
  prompt?: string | null;
  mode?: string | null;
  timeout_ms?: number;
  onCheck?: (name: CheckName) => void;
}

/** Rejects if aborted, or if it cannot run at all (no git, no temporary folder). */
export async function examineAgent(options: DoctorOptions): Promise<Report> {
  const { argv, env, timeout_ms = limits.doctor_check_ms, onCheck = () => {} } = options;
  const known_as = options.agent ?? guessAgent(options.preset ? [options.preset.id] : argv);
  const preset = options.preset ?? (known_as && findPreset(known_as));
  const chosen_mode = options.mode ?? null;
  const preset_mode = (preset && permissionSessionModes(preset).at(-1)) ?? null;
  const cookie = newSecret(12);
  const leftovers = new Leftovers(cookie);
  const workspace = await Workspace.make();
  const clear = () => {
    leftovers.kill();
    workspace.remove();
  };
  const interrupted = abortOnSignal(clear);
  let model: ModelServer | null = null;
  let model_settings: ModelSettings | null = null;
  try {
    if (options.scripted) {
      // Loaded only here, because most examinations do not use it.
      const { openModelServer } = await import('./model/server.ts');
      const { modelSettingsFor } = await import('./model/agent-settings.ts');
      model = await openModelServer(workspace.work);
      model_settings = modelSettingsFor(known_as, model.url);
      await workspace.write(model_settings);
    }
    const facts = emptyStdoutFacts();
    const examination = new Examination({
      agent: {
        argv,
        cwd: workspace.work,
        env: workspace.environment({
          own: env,
          preset_env: preset ? { ...preset.env, ...permissionEnv(preset) } : {},
          cookie,
          model_settings,
        }),
        facts,
      },
      workspace,
      leftovers,
      model,
      prompt: options.prompt ?? null,
      mode: chosen_mode ?? preset_mode,
      must_ask: chosen_mode === null && preset?.permission.guarantee === 'ask',
      timeout_ms,
      signal: AbortSignal.any([options.signal, interrupted.signal]),
      onCheck,
    });
    await examination.run();
    const agent = examination.initialize_result?.agentInfo;
    return {
      command: argv,
      agent: agent ? { name: agent.name, version: agent.version } : null,
      known_as,
      grade: totalGrade(examination.checks),
      checks: examination.checks,
      model_requests: model && [...model.requests],
      stderr: examination.stderr,
    };
  } finally {
    await model?.close();
    clear();
    interrupted[Symbol.dispose]();
  }
}

/** SIGTERM and SIGHUP abort the examination. If the process exits immediately, `cleanup` still runs. */
function abortOnSignal(cleanup: () => void): { signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const abort = (name: NodeJS.Signals) => controller.abort(new Error(`ended by ${name}`));
  const signals = ['SIGTERM', 'SIGHUP'] as const;
  for (const name of signals) process.once(name, abort);
  process.once('exit', cleanup);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      for (const name of signals) process.off(name, abort);
      process.off('exit', cleanup);
    },
  };
}
