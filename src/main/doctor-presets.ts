/**
 * The checks of `svc doctor` for presets: which known agents are installed on this machine. A missing one is not a
 * failure.
 */
import { type DoctorCheck, passed } from '../cli/context.ts';
import type { Config } from '../core/config.ts';
import { presets } from '../features/presets/rules/catalog.ts';
import { presetRecord, toProgramQuestion } from '../features/presets/rules/preset.ts';
import { findUser } from '../node/confinement/run-as.ts';
import { directExec } from '../node/processes/exec.ts';
import { probe } from '../node/processes/program-probe.ts';
import { binFolder, commonEnvironment } from '../node/sessions/environment.ts';
import { configuredSandbox } from './open-node.ts';

/** Uses the PATH of the person who runs the command, which may differ from that of the service. */
export async function presetChecks(
  config: Config,
  env: Record<string, string | undefined>,
): Promise<DoctorCheck[]> {
  const name = config.get('agents.run_as');
  // Another check reports the user, or why looking it up failed.
  const run_as = name === null ? null : await findUser(directExec, name).catch(() => undefined);
  if (run_as === undefined) return [];
  const allowed = config.get('agents.env_allow');
  const allow = allowed.length > 0 ? allowed : null;
  const probed = presets.flatMap((preset) => {
    const question = toProgramQuestion(preset);
    return question ? [{ preset, question }] : [];
  });
  const questions = probed.map(({ question }) => question);
  const sandbox = configuredSandbox(config, env, directExec, run_as);
  // Another check reports why the sandbox does not work.
  if (sandbox && (await sandbox.problem()) !== null) return [];
  const common = commonEnvironment({
    own: env,
    allow,
    run_as,
    sandboxed: sandbox !== null,
    bin_dir: binFolder,
  });
  const confinement = (await sandbox?.folders({ kind: 'programs' }))?.argv ?? [];
  const found = await probe(questions, { exec: directExec, env: common, run_as, confinement });
  const records = probed.map(({ preset }, at) => presetRecord(preset, found[at]!));
  const lines = records
    .filter(({ installed }) => installed)
    .map(({ id, path, version, signed_in, sign_in_hint }) => {
      const sign_in = sign_in_hint === null ? '' : `, signed in: ${signed_in}`;
      return passed(`preset ${id}`, `${version ?? 'version unknown'} at ${path}${sign_in}`);
    });
  const missing = records.filter(({ installed }) => !installed).map(({ id }) => id);
  if (missing.length === 0) return lines;
  return [...lines, passed('presets', `not installed here: ${missing.join(', ')}`)];
}
