/** `svc config …`: shows settings and their origins, and changes live settings through the plane. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type ApiOptions, connect, localUrl, openApi } from '../../../cli/api.ts';
import type { Context } from '../../../cli/context.ts';
import { readCredentials } from '../../../cli/credentials.ts';
import { Failure, failed, usage } from '../../../cli/failure.ts';
import { localFlags, parsePair, remote } from '../../../cli/options.ts';
import { printRows, printStatus } from '../../../cli/output.ts';
import { Unreachable } from '../../../client/client.ts';
import {
  type ConfigKey,
  type ConfigOrigin,
  configKeyNames,
  configKeys,
  isConfigKey,
  listFromText,
  maskValue,
} from '../../../core/config.ts';
import { allowFolder } from './allow.ts';

interface Options extends ApiOptions {
  json?: boolean;
  origin?: boolean;
  offline?: boolean;
}

interface Row {
  key: string;
  value: unknown;
  origin: ConfigOrigin;
  source: string | null;
  live: boolean;
}

export function addConfig(program: Command, context: Context): void {
  const { io, local } = context;
  const config = program.command('config').description('show and change the configuration');

  remote(config, 'show [key...]', 'show keys and their values; secrets are masked')
    .option('--origin', 'also show the origin: flag, env, live, file or default')
    .option('--offline', 'do not connect to a running plane')
    .action(async (keys: string[], options: Options) => {
      for (const key of keys) if (!isConfigKey(key)) throw usage(`unknown key ${key}`);
      const rows = (await fromPlane(options)) ?? (await offline(options));
      const shown = rows.filter(({ key }) => keys.length === 0 || keys.includes(key));
      const columns = [
        { title: 'KEY', value: (row: Row) => row.key },
        { title: 'VALUE', value: (row: Row) => (row.value === null ? '' : JSON.stringify(row.value)) },
      ];
      const origins = [
        { title: 'ORIGIN', value: (row: Row) => row.origin },
        { title: 'SOURCE', value: (row: Row) => row.source },
      ];
      await printRows(io, shown, options.origin ? [...columns, ...origins] : columns, options);
    });

  addSet(config, context);
  addAllow(config, context);

  async function offline(options: Options): Promise<Row[]> {
    const loaded = await local.loadConfig(localFlags(options));
    for (const warning of loaded.warnings) printStatus(io, `warning: ${warning}`);
    return configKeyNames.map((key) => {
      const { value, origin, source } = loaded.entry(key);
      return { key, value: maskValue(key, value), origin, source, live: configKeys[key].live };
    });
  }

  /** Rows from a running plane, which knows live settings and its own flags. Null if there is none, or no access to it. */
  async function fromPlane(options: Options): Promise<Row[] | null> {
    if (options.offline) return null;
    const named = options.url ?? io.env.SVC_URL;
    if (named) {
      const api = await connect(context, options);
      return await api.call('getConfig', {});
    }
    const data_dir = (await local.loadConfig(localFlags(options))).get('data_dir');
    if ((await local.holderOf(data_dir)) === null) return null;
    const url = await localUrl(context, options);
    const token = io.env.SVC_TOKEN || (await readCredentials(io)).hosts[url]?.token;
    try {
      if (!token) throw failed(`not signed in to ${url}`);
      return await (await openApi(context, options, url, token)).call('getConfig', {});
    } catch (error) {
      if (error instanceof Unreachable || error instanceof Failure || (error as Error).name === 'Problem') {
        printStatus(
          io,
          `cannot get settings from the running plane (${(error as Error).message}); live settings are not included`,
        );
        return null;
      }
      throw error;
    }
  }
}

function addSet(config: Command, context: Context): void {
  const { io } = context;
  remote(
    config,
    'set <pair...>',
    'change live settings: <key>=<value>; an empty value resets the key',
  ).action(async (pairs: string[], options: Options) => {
    const changes = Object.fromEntries(pairs.map((pair) => change(pair)));
    const api = await connect(context, options);
    const list = await api.call('updateConfig', { body: changes });
    const shown = list.filter(({ key }) => key in changes);
    await printRows(
      io,
      shown,
      [
        { title: 'KEY', value: (row) => row.key },
        { title: 'VALUE', value: (row) => JSON.stringify(row.value) },
        { title: 'ORIGIN', value: (row) => row.origin },
      ],
      options,
    );
  });
}

function addAllow(config: Command, context: Context): void {
  const { io } = context;
  remote(config, 'allow <folder>', 'let agents of the main node work in a folder (root)')
    .option('--repositories', 'only as a source of worktrees (worktree.repo_roots), not as a workdir')
    .action(async (folder: string, options: Options & { repositories?: boolean }) => {
      const setting = options.repositories ? 'worktree.repo_roots' : 'safe_paths';
      const api = await connect(context, options);
      const folders = await allowFolder(api, setting, resolve(io.cwd, folder));
      const rows = folders.map((path) => ({ setting, path }));
      await printRows(io, rows, [{ title: 'FOLDER', value: ({ path }) => path }], options);
    });
}

function change(pair: string): [ConfigKey, unknown] {
  const [key, text] = parsePair(pair, 'set');
  if (!isConfigKey(key)) throw usage(`unknown key ${key}`);
  if (text === '') return [key, null];
  switch (configKeys[key].kind) {
    case 'integer':
      return [key, /^-?\d+$/.test(text) ? Number(text) : text];
    case 'boolean':
      return [key, text === 'true' ? true : text === 'false' ? false : text];
    case 'list':
    case 'paths':
      return [key, listFromText(text)];
    default:
      return [key, text];
  }
}
