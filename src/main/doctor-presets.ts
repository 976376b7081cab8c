/** What `svc doctor` says of agents that svc knows by name: which are on this machine. None of it is a failure. */
import type { DoctorCheck } from '../cli/context.ts';
import type { Config } from '../contract/config.ts';
import { presetRecord, questionOf } from '../domain/preset.ts';
import { presets } from '../domain/presets.ts';
import { binFolder, commonEnvironment } from '../runtime/environment.ts';
import { directExec } from '../runtime/exec.ts';
import { probe } from '../runtime/probe.ts';
import { findUser } from '../runtime/run-as.ts';
import { configuredSandbox } from './machine.ts';

/** By the PATH of whoever asks, which the service's may differ from. */
export async function presetChecks(
  config: Config,
  env: Record<string, string | undefined>,
): Promise<DoctorCheck[]> {
  const name = config.get('agents.run_as');
  // Who that is, and why not, is told by a check of its own.
  const run_as = name === null ? null : await findUser(directExec, name).catch(() => undefined);
  if (run_as === undefined) return [];
  const allowed = config.get('agents.env_allow');
  const allow = allowed.length > 0 ? allowed : null;
  const common = commonEnvironment({ own: env, allow, run_as, bin_dir: binFolder });
  const asked = presets.flatMap((preset) => {
    const question = questionOf(preset);
    return question ? [{ preset, question }] : [];
  });
  const questions = asked.map(({ question }) => question);
  const sandbox = configuredSandbox(config, env, directExec, run_as);
  // Another check reports why the sandbox does not work.
  if (sandbox && (await sandbox.problem()) !== null) return [];
  const confinement = (await sandbox?.folders({ kind: 'programs' }))?.argv ?? [];
  const found = await probe(questions, { exec: directExec, env: common, run_as, confinement });
  const records = asked.map(({ preset }, at) => presetRecord(preset, found[at]!));
  const lines = records
    .filter(({ installed }) => installed)
    .map(({ id, path, version, signed_in, sign_in_hint }) => ({
      name: `preset ${id}`,
      ok: true,
      detail: `${version ?? 'version unknown'} at ${path}${sign_in_hint === null ? '' : `, signed in: ${signed_in}`}`,
    }));
  const missing = records.filter(({ installed }) => !installed).map(({ id }) => id);
  if (missing.length === 0) return lines;
  return [...lines, { name: 'presets', ok: true, detail: `not installed here: ${missing.join(', ')}` }];
}
