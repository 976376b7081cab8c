/**
 * The configuration as it is now: what the process was started with, and the live changes of root over the file and the
 * defaults. Refuses what flags or the environment have fixed, and keys that need a restart. A change is checked,
 * audited, stored and applied as one.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
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
} from '../contract/config.ts';
import type { AuditEvent } from '../domain/audit.ts';
import { invalid, Problem } from '../domain/problem.ts';
import type { Caller } from '../domain/user.ts';
import type { Store, Tx } from '../store/store.ts';

/** What the settings need of the audit log. */
export interface ChangeRecorder {
  record(
    tx: Tx,
    entry: { event: AuditEvent; user_id: string | null; ip: string | null; details: Record<string, unknown> },
  ): unknown;
}

export interface SettingRecord {
  key: ConfigKey;
  /** Secrets are masked. */
  value: unknown;
  origin: ConfigOrigin;
  /** `SVC_…`, `--flag` or `file:line`; null for live values and defaults. */
  source: string | null;
  live: boolean;
  description: string;
}

export interface LiveSettings extends Settings {
  list(): SettingRecord[];
  /** All changes or none; null takes a live value away. Answers the new list. */
  change(caller: Caller, changes: Record<string, unknown>): Promise<SettingRecord[]>;
}

interface Deps {
  config: Config;
  store: Store;
  audit: ChangeRecorder;
  clock: Clock;
  log: Logger;
  /** Why the values that a change would lead to must not be, beyond what each key allows; null: they may. */
  conflict?(settings: Pick<Settings, 'get'>): Promise<string | null>;
}

export async function openSettings({
  config,
  store,
  audit,
  clock,
  log,
  conflict,
}: Deps): Promise<LiveSettings> {
  const rows = await store.read((reader) => reader.all(reader.sql.selectFrom('settings').selectAll()));
  const live = new Map<ConfigKey, unknown>();
  const listeners = new Map<ConfigKey, Set<(value: never) => void>>();

  for (const row of rows) {
    const checked = isConfigKey(row.key) ? checkValue(row.key, JSON.parse(row.value)) : null;
    if (isConfigKey(row.key) && checked?.ok && configKeys[row.key].live) live.set(row.key, checked.value);
    else log.warn({ key: row.key }, 'a stored live setting is no longer valid and is ignored');
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
    if (origin === 'flag' || origin === 'env') {
      throw new Problem('conflict', 'setting_fixed', `${key} is fixed by ${source}`);
    }
    if (value === null) return [key, undefined];
    const checked = checkValue(key, value);
    if (!checked.ok) throw invalid(checked.error);
    return [key, checked.value];
  };

  const change = async (caller: Caller, changes: Record<string, unknown>): Promise<SettingRecord[]> => {
    const checked = Object.entries(changes).map(([key, value]) => checkChange(key, value));
    if (checked.length === 0) return list();
    const changed = new Map(checked);
    const why = await conflict?.({
      get: (key) => (changed.has(key) ? ((changed.get(key) ?? config.get(key)) as never) : get(key)),
    });
    if (why) throw invalid(why);
    const { user_id, ip } = caller;
    await store.write((tx) => {
      for (const [key, value] of checked) {
        if (isDeepStrictEqual(live.get(key), value)) continue;
        const from = maskValue(key, get(key));
        const to = maskValue(key, value ?? config.get(key));
        if (value === undefined) {
          tx.run(tx.sql.deleteFrom('settings').where('key', '=', key));
        } else {
          const row = { value: JSON.stringify(value), updated_at: clock.now(), updated_by: user_id };
          tx.run(
            tx.sql
              .insertInto('settings')
              .values({ key, ...row })
              .onConflict((conflict) => conflict.column('key').doUpdateSet(row)),
          );
        }
        audit.record(tx, { event: 'config_changed', user_id, ip, details: { key, from, to } });
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
          log.error({ key, err: error }, 'a setting could not be applied');
        }
      }
    }
  };

  const onChange = <K extends ConfigKey>(key: K, fn: (value: ConfigValues[K]) => void) => {
    const own = listeners.get(key) ?? new Set();
    listeners.set(key, own.add(fn));
    return () => void own.delete(fn);
  };

  return { get, origin, onChange, list, change };
}
