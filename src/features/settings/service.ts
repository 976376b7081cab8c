/**
 * The current configuration: the values from startup, and root's live changes, which override the file and defaults. Rejects
 * changes to keys that a flag or the environment sets, and to keys that require a restart. A change is validated, audited,
 * stored and applied as a unit.
 */
import { isDeepStrictEqual } from 'node:util';
import { KeyedQueue } from '../../base/async.ts';
import type { Logger } from '../../base/log.ts';
import {
  type Config,
  type ConfigKey,
  type ConfigOrigin,
  type ConfigValues,
  checkValue,
  configKeyNames,
  configKeys,
  isConfigKey,
  maskValue,
  type Settings,
} from '../../core/config.ts';
import { type FolderSetting, invalid, settingFixed } from '../../core/problem.ts';
import { requireLiveToken } from '../../store/live-tokens.ts';
import type { Store, Tx } from '../../store/store.ts';
import type { Caller } from '../accounts/rules.ts';
import type { AuditEvent } from '../audit/rules/audit.ts';
import { deleteSetting, listSettings, putSetting } from './queries.ts';

/** The part of the audit log that the settings use. */
export interface ChangeRecorder {
  record(
    tx: Tx,
    entry: { event: AuditEvent; user_id: string | null; ip: string | null; details: Record<string, unknown> },
  ): Promise<unknown>;
}

export interface SettingRecord {
  key: ConfigKey;
  /** Masked if it is secret. */
  value: unknown;
  origin: ConfigOrigin;
  /** `SVC_…`, `--flag` or `file:line`; null for live values and defaults. */
  source: string | null;
  live: boolean;
  description: string;
}

export interface LiveSettings extends Settings {
  list(): SettingRecord[];
  /** Applies all changes or none; null removes a live value. Returns the new list. */
  change(caller: Caller, changes: Record<string, unknown>): Promise<SettingRecord[]>;
  /** Adds a folder (an absolute path) to the folders of a setting. Returns all of them. Idempotent. */
  allowFolder(caller: Caller, setting: FolderSetting, path: string): Promise<string[]>;
}

interface Deps {
  config: Config;
  store: Store;
  audit: ChangeRecorder;
  log: Logger;
  /**
   * Returns why the resulting values are invalid in combination, apart from the checks of each key; null if they are valid.
   */
  conflict?(changed: Pick<Settings, 'get'>, before: Pick<Settings, 'get'>): Promise<string | null>;
}

/** Loads the stored live settings on top of `config`; logs and ignores those that are no longer valid. */
export async function openSettings({ config, store, audit, log, conflict }: Deps): Promise<LiveSettings> {
  const rows = await store.read(listSettings);
  const live = new Map<ConfigKey, unknown>();
  const listeners = new Map<ConfigKey, Set<(value: never) => void>>();

  for (const row of rows) {
    const checked = isConfigKey(row.key) ? checkValue(row.key, JSON.parse(row.value)) : null;
    if (isConfigKey(row.key) && checked?.ok && configKeys[row.key].live) live.set(row.key, checked.value);
    else log.warn({ key: row.key }, 'ignoring a stored live setting that is no longer valid');
  }

  const pinned = (key: ConfigKey) => ['flag', 'env'].includes(config.entry(key).origin);
  const isLive = (key: ConfigKey) => !pinned(key) && live.has(key);
  const get = <K extends ConfigKey>(key: K): ConfigValues[K] =>
    isLive(key) ? (live.get(key) as ConfigValues[K]) : config.get(key);
  const origin = (key: ConfigKey): ConfigOrigin => (isLive(key) ? 'live' : config.entry(key).origin);

  const list = (): SettingRecord[] =>
    configKeyNames.map((key) => ({
      key,
      value: maskValue(key, get(key)),
      origin: origin(key),
      source: isLive(key) ? null : config.entry(key).source,
      live: configKeys[key].live,
      description: configKeys[key].description,
    }));

  const checkChange = (key: string, value: unknown): [ConfigKey, unknown] => {
    if (!isConfigKey(key)) throw invalid(`${key.slice(0, 64)} is not a known setting`);
    if (!configKeys[key].live) throw invalid(`${key} cannot be changed while the service runs`);
    const { origin, source } = config.entry(key);
    if (origin === 'flag' || origin === 'env') throw settingFixed(key, source);
    if (value === null) return [key, undefined];
    const checked = checkValue(key, value);
    if (!checked.ok) throw invalid(checked.error);
    return [key, checked.value];
  };

  // One at a time: a change is checked against the values that it will meet, and a folder is added to those before it.
  const queue = new KeyedQueue();
  const change = (caller: Caller, changes: Record<string, unknown>) =>
    queue.run('change', () => changeNow(caller, changes));

  const allowFolder = (caller: Caller, setting: FolderSetting, path: string) =>
    queue.run('change', async () => {
      const [, added] = checkChange(setting, [path]);
      const before = get(setting);
      const folders = [...new Set([...before, ...(added as string[])])];
      if (folders.length > before.length) await changeNow(caller, { [setting]: folders });
      return [...get(setting)];
    });

  const changeNow = async (caller: Caller, changes: Record<string, unknown>): Promise<SettingRecord[]> => {
    const checked = Object.entries(changes).map(([key, value]) => checkChange(key, value));
    if (checked.length === 0) return list();
    const changed = new Map(checked);
    const after: Pick<Settings, 'get'> = {
      get: (key) => (changed.has(key) ? ((changed.get(key) ?? config.get(key)) as never) : get(key)),
    };
    const why = await conflict?.(after, { get });
    if (why) throw invalid(why);
    const { user_id, ip } = caller;
    await store.write(async (tx) => {
      // The change may have waited for others and for nodes.
      await requireLiveToken(tx, caller);
      for (const [key, value] of checked) {
        if (isDeepStrictEqual(live.get(key), value)) continue;
        const from = maskValue(key, get(key));
        const to = maskValue(key, value ?? config.get(key));
        if (value === undefined) {
          await deleteSetting(tx, key);
        } else {
          await putSetting(tx, { key, value: JSON.stringify(value) });
        }
        await audit.record(tx, { event: 'config_changed', user_id, ip, details: { key, from, to } });
      }
      tx.afterCommit(() => apply(checked));
    });
    return list();
  };

  const apply = (changes: [ConfigKey, unknown][]) => {
    for (const [key, value] of changes) {
      if (value === undefined) live.delete(key);
      else live.set(key, value);
    }
    for (const [key] of changes) {
      for (const listener of listeners.get(key) ?? []) {
        try {
          listener(get(key) as never);
        } catch (error) {
          log.error({ key, err: error }, 'cannot apply a setting');
        }
      }
    }
  };

  const onChange = <K extends ConfigKey>(key: K, fn: (value: ConfigValues[K]) => void) => {
    const own = listeners.get(key) ?? new Set();
    listeners.set(key, own.add(fn));
    return () => void own.delete(fn);
  };

  return { get, origin, onChange, list, change, allowFolder };
}
