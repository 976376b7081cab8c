/** Options that many commands share, and flags that set configuration keys. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { limits } from '../base/limits.ts';
import { type ConfigKey, configKeys, isConfigKey } from '../core/config.ts';
import type { LocalFlags } from './context.ts';
import { usage } from './failure.ts';

export interface LocalOptions {
  config?: string | undefined;
  dataDir?: string | undefined;
  listen?: string | undefined;
  /** `key=value`, repeatable. */
  set?: string[] | undefined;
}

/** Adds a command that prints data and takes `--json`. */
export function addJsonCommand(parent: Command, usageText: string, description: string): Command {
  return parent.command(usageText).description(description).option('--json', 'print JSON');
}

/** Adds a command that talks to the plane. */
export function remote(parent: Command, usageText: string, description: string): Command {
  return withPlane(addJsonCommand(parent, usageText, description));
}

/** Adds a command that talks to the plane and prints bytes. `for_json`: the command that the error for `--json` names. */
export function remoteBytes(
  parent: Command,
  usageText: string,
  description: string,
  for_json: string,
): Command {
  const command = withPlane(parent.command(usageText).description(description));
  // Declared, because it may come before the command, and for an error that says more than `unknown option`.
  return command.addOption(new Option('--json').hideHelp()).hook('preAction', () => {
    const { json } = command.opts<{ json?: boolean }>();
    if (json) throw usage(`svc ${parent.name()} ${command.name()} takes no --json; use ${for_json}`);
  });
}

function withPlane(command: Command): Command {
  return withLocal(command).option('--url <url>', 'URL of the plane (SVC_URL)');
}

/** Adds a command that reads this machine's configuration. */
export function withLocal(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file (SVC_CONFIG)')
    .option('--data-dir <dir>', 'data directory (SVC_DATA_DIR)');
}

export function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

/** Collects the numbers of a repeatable flag. */
export function collectNumbers(text: string, before: number[] = []): number[] {
  return [...before, integer(text)];
}

/** Makes it a usage error to give a flag twice, unless the flag collects its values. */
export function rejectRepeatedOptions(command: Command): void {
  const repeatable: unknown[] = [collect, collectNumbers];
  for (const option of command.options) {
    if (!option.required || repeatable.includes(option.parseArg)) continue;
    let is_set = false;
    command.on(`option:${option.name()}`, () => {
      if (is_set) throw usage(`${option.long} may be given only once`);
      is_set = true;
    });
  }
}

export function localFlags(options: LocalOptions): LocalFlags {
  const values = new Map<ConfigKey, { text: string; flag: string }>();
  if (options.dataDir !== undefined) values.set('data_dir', { text: options.dataDir, flag: '--data-dir' });
  if (options.listen !== undefined) values.set('server.listen', { text: options.listen, flag: '--listen' });
  for (const pair of options.set ?? []) {
    const [key, text] = parsePair(pair, '--set');
    if (!isConfigKey(key)) throw usage(`--set ${key}: unknown key`);
    if (!configKeys[key].argument) throw usage(`--set ${key}: secrets are not allowed in arguments`);
    values.set(key, { text, flag: `--set ${key}` });
  }
  return { file: options.config, values };
}

/** `name=value`. */
export function parsePair(text: string, flag: string): [string, string] {
  const at = text.indexOf('=');
  if (at < 1) throw usage(`${flag} ${text}: must be <name>=<value>`);
  return [text.slice(0, at), text.slice(at + 1)];
}

export function integer(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('must be a whole number');
  return Number(text);
}

/** An option that takes a duration to wait. `default_ms`: must be whole seconds, because help shows it in seconds. */
export function waitOption(flags: string, description: string, default_ms: number): Option {
  return new Option(flags, description).argParser(timeLimit).default(default_ms, `${default_ms / 1_000}s`);
}

/** Adds `--timeout` for what `--<other>` waits for. Without that option, it is a usage error. */
export function withTimeout(command: Command, other: 'follow' | 'wait' | 'watch'): Command {
  return command
    .option('--timeout <duration>', `with --${other}: time limit (exit code 124)`, timeLimit)
    .hook('preAction', () => {
      const options = command.opts<Record<string, unknown>>();
      if (options.timeout !== undefined && !options[other]) throw usage(`--timeout needs --${other}`);
    });
}

/** A duration to wait, at most as long as a timer can run. */
export function timeLimit(text: string): number {
  const ms = duration(text);
  const hours = Math.floor(limits.timer_ms_max / 3_600_000);
  if (ms > limits.timer_ms_max) throw new InvalidArgumentError(`must be at most ${hours}h`);
  return ms;
}

/** `90`, `90s`, `10m`, `2h` → milliseconds. */
export function duration(text: string): number {
  const match = /^(\d{1,9})(ms|s|m|h)?$/.exec(text);
  if (!match) throw new InvalidArgumentError('must be a duration, for example 90s or 10m');
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[match[2] ?? 's']!;
  return Number(match[1]) * unit;
}
