/**
 * Installs the package that `npm pack` makes with `npm i -g` into a temporary folder, starts the service from there, and runs one agent.
 * Then a JavaScript and a TypeScript project outside the repository use the client of the package.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { root, run } from './run.ts';

const folder = await mkdtemp(join(tmpdir(), 'svc-package-'));
const WAIT_MS = 120_000;
const INSTALL_MS = 240_000;
const PROGRAM = `import { Client, Problem } from '@svc-orchestrator/svc/client';

const [url, token, agent_id] = process.argv.slice(2);
const client = new Client({ url, token });
const { name } = await client.call('getAgent', { params: { agent_id } });
let output = '';
for await (const { data } of client.follow('followAgent', { params: { agent_id } })) {
  if (data.type === 'output') output += data.data;
  if (output.endsWith('done\\n')) break;
}
const missing = await client.call('getAgent', { params: { agent_id: 'agt_none' } }).catch((error) => error);
console.log(name, output.split('\\n').length, missing instanceof Problem, missing.message);
`;
const TYPED = `import { Client } from '@svc-orchestrator/svc/client';

const client = new Client({ url: 'http://127.0.0.1:8080', token: null });
export const name: Promise<string> = client.call('getAgent', { params: { agent_id: 'x' } }).then((agent) => agent.name);
// @ts-expect-error an operation that does not exist
void client.call('getAgents');
// @ts-expect-error a parameter that is missing
void client.call('getAgent', {});
`;

try {
  await need(['npm', 'pack', '--pack-destination', folder], root);
  const archive = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  await need(['npm', 'install', '--global', '--prefix', folder, join(folder, archive)], folder);
  await tryService(join(folder, 'bin/svc'));
  console.log('the package works after npm i -g, and so does its client');
} finally {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

async function need(argv: [string, ...string[]], cwd: string): Promise<string> {
  const { ok, output, seconds } = await run(argv, cwd, { stranger: true, timeout_ms: INSTALL_MS });
  if (!ok) throw new Error(`${argv.join(' ')} failed after ${Math.round(seconds)} s:\n${output}`);
  return output;
}

async function tryService(svc: string): Promise<void> {
  const data_dir = join(folder, 'data');
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    SVC_DATA_DIR: data_dir,
    SVC_SAFE_PATHS: folder,
    SVC_SERVER_LISTEN: '127.0.0.1:0',
  };
  const service = spawn(svc, ['serve'], { cwd: folder, env, stdio: ['ignore', 'inherit', 'inherit'] });
  const ended = once(service, 'exit');
  try {
    const { url } = await eventually(async () => {
      const holder = JSON.parse(await readFile(join(data_dir, 'plane.json'), 'utf8'));
      return holder.url && (await fetch(`${holder.url}/readyz`)).ok ? (holder as { url: string }) : null;
    });
    const { token, pin } = JSON.parse(await readFile(join(data_dir, 'join.json'), 'utf8'));
    const call = async (method: string, path: string, bearer: string | null, body?: unknown) => {
      const response = await fetch(url + path, {
        method,
        headers: {
          ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
          ...(body ? { 'content-type': 'application/json' } : {}),
        },
        ...(body ? { body: JSON.stringify(body) } : {}),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      return response;
    };
    const joined = await call('POST', '/api/join', null, {
      token,
      pin,
      username: 'ana',
      password: 'a long password',
    });
    const bearer = ((await joined.json()) as { token: string }).token;
    const made = await call('POST', '/api/agents', bearer, {
      name: 'hello',
      worktree_mode: 'create_worktree',
      command: 'svc --version && echo done',
      start: true,
    });
    const { id } = (await made.json()) as { id: string };
    await eventually(async () => {
      const agent = (await (await call('GET', `/api/agents/${id}`, bearer)).json()) as { status: string };
      return agent.status === 'running' ? null : agent.status;
    });
    const output = await (await call('GET', `/api/agents/${id}/output?stream=stdout`, bearer)).text();
    if (!/^\d+\.\d+\.\d+\ndone\n$/.test(output)) throw new Error(`the agent wrote ${JSON.stringify(output)}`);
    const docs = await (await call('GET', '/api/openapi/docs', bearer)).text();
    if (!docs.includes('<html')) throw new Error('the API description page is missing');
    const page = await (await call('GET', '/', null)).text();
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1];
    if (script === undefined) throw new Error(`the web UI is missing: ${page}`);
    await (await call('GET', script, null)).text();
    await tryClient(url, bearer, id);
  } finally {
    service.kill('SIGTERM');
    await ended;
  }
}

/** From projects that have nothing but the installed package. */
async function tryClient(url: string, token: string, agent_id: string): Promise<void> {
  const project = join(folder, 'project');
  await mkdir(join(project, 'node_modules/@svc-orchestrator'), { recursive: true });
  await symlink(
    join(folder, 'lib/node_modules/@svc-orchestrator/svc'),
    join(project, 'node_modules/@svc-orchestrator/svc'),
  );
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  await writeFile(join(project, 'program.js'), PROGRAM);
  await writeFile(join(project, 'program.ts'), TYPED);
  const said = await need(['node', 'program.js', url, token, agent_id], project);
  if (said !== 'hello 3 true agent not found\n')
    throw new Error(`the client answered ${JSON.stringify(said)}`);
  const tsc = join(root, 'node_modules/.bin/tsc');
  const strict = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', ''];
  await need([tsc, ...strict, '--lib', 'es2024,esnext.disposable,dom', 'program.ts'], project);
}

async function eventually<T>(look: () => Promise<T | null>): Promise<T> {
  for (const end = Date.now() + WAIT_MS; ; ) {
    const found = await look().catch((error: Error) => error);
    if (found !== null && !(found instanceof Error)) return found;
    if (Date.now() > end) throw found ?? new Error('timed out');
    await sleep(50);
  }
}
