/** A real nginx, with a configuration of the documentation. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { openPace } from './pace.ts';

/** The program; undefined if it is not installed. */
export const nginx = (process.env.PATH ?? '')
  .split(':')
  .concat('/usr/sbin', '/usr/local/sbin')
  .map((folder) => join(folder, 'nginx'))
  .find((path) => existsSync(path));

export interface TestNginx {
  /** Ends nginx. Idempotent. */
  close(): Promise<void>;
}

/** Starts nginx with this content of its `http` block; resolves when it accepts connections at `listen`: a port or a socket's path. */
export async function openNginx(folder: string, http: string, listen: number | string): Promise<TestNginx> {
  await mkdir(folder);
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `${process.getuid?.() === 0 ? 'user root;' : ''} daemon off; master_process off; pid ${folder}/pid;
     error_log stderr; events {} http { access_log off; ${temp.join(' ')}
     ${http} }`,
  );
  const child = spawn(nginx!, ['-p', folder, '-e', 'stderr', '-c', file], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  for (const pace = openPace(); !(await accepts(listen)); await pace()) {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${errors}`);
  }
  return {
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function accepts(listen: number | string): Promise<boolean> {
  const socket = typeof listen === 'number' ? connect(listen, '127.0.0.1') : connect(listen);
  const accepted = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return accepted;
}
