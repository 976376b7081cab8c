/**
 * `svc agents doctor`: examines an ACP agent by its command, in a folder of its own, without plane or login. Whatever it
 * started is gone when it ends, however it ends, but for SIGKILL.
 */
import { newSecret } from '../base/ids.ts';
import { limits } from '../base/limits.ts';
import { type Preset, permissionEnv, permissionSessionModes } from '../domain/preset.ts';
import { findPreset } from '../domain/presets.ts';
import { Examination } from './examination.ts';
import { noFrames } from './frames.ts';
import { type AgentName, dressFor, guessAgent } from './known.ts';
import { Leftovers } from './leftovers.ts';
import { type ModelServer, openModelServer } from './model/server.ts';
import { Place } from './place.ts';
import { type CheckName, type Report, totalGrade } from './report.ts';

export interface DoctorOptions {
  argv: readonly [string, ...string[]];
  /** Our own environment. */
  env: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
  /** Null: guessed from the command. */
  agent?: AgentName | null;
  /** As the plane starts agents of this preset; null: that of the agent that the command is known as. */
  preset?: Preset | null;
  /** With the scripted model instead of the agent's own. */
  scripted?: boolean;
  prompt?: string | null;
  mode?: string | null;
  timeout_ms?: number;
  onCheck?: (name: CheckName) => void;
}

/** Rejects when it is aborted, or cannot work at all (no git, no temporary folder). */
export async function examineAgent(options: DoctorOptions): Promise<Report> {
  const { argv, env, timeout_ms = limits.doctor_check_ms, onCheck = () => {} } = options;
  const known_as = options.agent ?? guessAgent(options.preset ? [options.preset.id] : argv);
  const preset = options.preset ?? (known_as && findPreset(known_as));
  const chosen_mode = options.mode ?? null;
  const preset_mode = (preset && permissionSessionModes(preset).at(-1)) ?? null;
  const cookie = newSecret(12);
  const leftovers = new Leftovers(cookie);
  const place = await Place.make();
  const clear = () => {
    leftovers.kill();
    place.remove();
  };
  const ended = endedByOthers(clear);
  let model: ModelServer | null = null;
  try {
    if (options.scripted) model = await openModelServer(place.work);
    const dress = model && dressFor(known_as, model.url);
    if (dress) await place.dress(dress);
    const facts = noFrames();
    const examination = new Examination({
      agent: {
        argv,
        cwd: place.work,
        env: place.environment({
          own: env,
          usual: preset ? { ...preset.env, ...permissionEnv(preset) } : {},
          cookie,
          dress,
        }),
        facts,
      },
      place,
      leftovers,
      model,
      prompt: options.prompt ?? null,
      mode: chosen_mode ?? preset_mode,
      promised: chosen_mode === null && preset?.permission.guarantee === 'ask',
      timeout_ms,
      signal: AbortSignal.any([options.signal, ended.signal]),
      onCheck,
    });
    await examination.run();
    const agent = examination.able?.agentInfo;
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
    ended[Symbol.dispose]();
  }
}

/** Signals that end a program abort the examination; a process that ends at once still runs `last`. */
function endedByOthers(last: () => void): { signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const abort = (name: NodeJS.Signals) => controller.abort(new Error(`ended by ${name}`));
  const signals = ['SIGTERM', 'SIGHUP'] as const;
  for (const name of signals) process.once(name, abort);
  process.once('exit', last);
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      for (const name of signals) process.off(name, abort);
      process.off('exit', last);
    },
  };
}
