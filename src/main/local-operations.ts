/**
 * The CLI's operations on this machine: configuration, the lock, backups, moves of the database, the browser, and running the
 * plane. Each loads its modules when it is called, because most commands need none of them.
 */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { version } from '../base/version.ts';
import { xdgFolder } from '../base/xdg.ts';
import type { Io, LocalFlags, LocalOperations, PlaneHolder } from '../cli/context.ts';
import { Problem } from '../core/problem.ts';

export function localOperations(io: Io): LocalOperations {
  const load = async ({ file, values }: LocalFlags) => {
    const { env, cwd, home } = io;
    const { loadConfig } = await import('./config.ts');
    return loadConfig({ env, cwd, home, file, flags: values, tty: Boolean(io.stderr.isTTY) });
  };
  return {
    version,
    defaultConfigFile: () => join(xdgFolder(io, 'XDG_CONFIG_HOME', '.config'), 'svc/config.toml'),
    loadConfig: load,
    serve: async (flags) => {
      const { serve } = await import('./serve.ts');
      return serve(await load(flags), io);
    },
    holderOf: async (data_dir) => (await import('./lock.ts')).holderOf(data_dir),
    terminate,
    backup: async (config, file) => {
      const [{ backup }, { requireEmbeddedDatabase }] = await loadBackup();
      const data_dir = config.get('data_dir');
      requireEmbeddedDatabase(config, `back it up with pg_dump, and copy ${join(data_dir, 'secret.key')}`);
      return backup(data_dir, file, version, systemClock.now(), io.signal);
    },
    restore: async (config, file) => {
      const [{ restore }, { requireEmbeddedDatabase }] = await loadBackup();
      requireEmbeddedDatabase(
        config,
        'restore it with pg_restore into an empty database while svc is stopped',
      );
      return restore(config.get('data_dir'), file, systemClock.now());
    },
    moveDatabase: async (config, { to, onProgress }) => {
      const { moveToEmbedded, moveToPostgres } = await import('./move.ts');
      const move = to === 'postgres' ? moveToPostgres : moveToEmbedded;
      return move({ config, onProgress, signal: io.signal });
    },
    doctor: async (flags, options) => {
      const { doctor } = await import('./doctor.ts');
      return doctor(() => load(flags), io.env, options);
    },
    openBrowser: (url) => openBrowser(url, io),
  };
}

function loadBackup() {
  return Promise.all([import('./backup.ts'), import('./database.ts')]);
}

async function terminate(data_dir: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<PlaneHolder> {
  const { holderOf, isAlive } = await import('./lock.ts');
  const holder = holderOf(data_dir);
  if (holder === null) throw new Problem('conflict', 'not_running', `no plane is running on ${data_dir}`);
  if (!isAlive(holder)) {
    throw new Problem(
      'conflict',
      'holder_unknown',
      `pid ${holder.pid} is no longer the plane of ${data_dir}`,
    );
  }
  process.kill(holder.pid, signal);
  return holder;
}

/** False if there is no display, or no program that opens URLs. */
async function openBrowser(url: string, { env, stdout }: Io): Promise<boolean> {
  const mac = process.platform === 'darwin';
  const screen = mac || env.DISPLAY || env.WAYLAND_DISPLAY;
  if (!screen || !stdout.isTTY) return false;
  const { forBrowsers } = await import('./banner.ts');
  return new Promise((resolve) => {
    const child = spawn(mac ? 'open' : 'xdg-open', [forBrowsers(url)], { stdio: 'ignore', detached: true });
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
