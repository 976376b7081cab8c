/** The CLI's operations on this machine: configuration, the lock, backups, the browser, and running the plane. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { version } from '../base/version.ts';
import { xdg } from '../base/xdg.ts';
import type { Io, Local, LocalFlags, PlaneHolder } from '../cli/context.ts';
import { Problem } from '../core/problem.ts';
import { forBrowsers } from './banner.ts';
import { loadConfig } from './config.ts';
import { holderOf, isAlive } from './lock.ts';

export function openLocal(io: Io): Local {
  const load = ({ file, values }: LocalFlags) => {
    const { env, cwd, home } = io;
    return loadConfig({ env, cwd, home, file, flags: values, tty: Boolean(io.stderr.isTTY) });
  };
  return {
    version,
    defaultConfigFile: () => join(xdg(io, 'XDG_CONFIG_HOME', '.config'), 'svc/config.toml'),
    loadConfig: load,
    serve: async (flags) => {
      const { serve } = await import('./serve.ts');
      return serve(load(flags), io);
    },
    holderOf,
    terminate,
    backup: async (data_dir, file) => {
      const { backup } = await import('./backup.ts');
      return backup(data_dir, file, version, systemClock.now());
    },
    restore: async (data_dir, file) => {
      const { restore } = await import('./backup.ts');
      return restore(data_dir, file, systemClock.now());
    },
    doctor: async (flags) => {
      const { doctor } = await import('./doctor.ts');
      return doctor(() => load(flags), io.env);
    },
    openBrowser: (url) => openBrowser(url, io),
  };
}

function terminate(data_dir: string, signal: 'SIGTERM' | 'SIGKILL'): PlaneHolder {
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
function openBrowser(url: string, { env, stdout }: Io): Promise<boolean> {
  const mac = process.platform === 'darwin';
  const screen = mac || env.DISPLAY || env.WAYLAND_DISPLAY;
  if (!screen || !stdout.isTTY) return Promise.resolve(false);
  return new Promise((resolve) => {
    const child = spawn(mac ? 'open' : 'xdg-open', [forBrowsers(url)], { stdio: 'ignore', detached: true });
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}
