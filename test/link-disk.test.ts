import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sleep } from '../src/base/async.ts';
import { TestAgentNode, WITH_NODES } from '../src/testing/agent-node.ts';
import { TestPlane } from '../src/testing/plane.ts';

const MIB = 1024 * 1024;
const LINES = 200_000;
/** Only root on Linux can mount a small file system. */
const disk = test.runIf(process.platform === 'linux' && process.getuid?.() === 0);

disk(
  'a full disk of a node pauses output and refuses starts there, and no line is lost',
  {
    timeout: 120_000,
  },
  async () => {
    const data_dir = await mkdtemp(join(tmpdir(), 'svc-small-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=0700', 'svc-test', data_dir]);
    const plane = await TestPlane.open({ env: WITH_NODES });
    const node = await TestAgentNode.prepare(plane, { data_dir });
    try {
      await node.start(await node.token());
      await node.register();
      await node.linked();
      const filler = 'of some words to fill the disk with';
      const write = `seq -f 'line %.0f ${filler}' 1 ${LINES}`;
      const agent = await node.agent(`while [ ! -e go ]; do sleep 0.05; done; ${write}`);
      const other = await node.agent('true', { start: false });
      const { bavail, bsize } = await statfs(data_dir);
      await writeFile(join(data_dir, 'ballast'), Buffer.alloc(bavail * bsize - 3 * MIB));
      await writeFile(join(node.work, 'go'), '');
      const paused = async () =>
        (await plane.frames(agent.id, (frames) => frames.some(({ data }) => data.code === 'output_paused')))
          .length;
      expect(await paused()).toBeGreaterThan(0);
      const start = plane.client.call('startAgent', { params: { agent_id: other.id } });
      await expect(start).rejects.toThrow('not enough disk space');
      expect(await plane.get(other.id)).toMatchObject({ status: 'created', pending: null });
      expect((await plane.get(agent.id)).status).toBe('running');
      const health = await plane.client.call('getAgentNodeHealth', { params: { node_id: node.id } });
      expect(health).toMatchObject({ status: 'degraded', disk: { starts_allowed: false } });
      // The plane can link to a node that has no disk space.
      await plane.kill();
      await plane.start();
      await sleep(500);
      await rm(join(data_dir, 'ballast'));
      expect((await plane.finished(agent.id)).status).toBe('completed');
      const lines = (await plane.output(agent.id)).toString().split('\n');
      expect(lines).toHaveLength(LINES + 1);
      expect(lines.every((line, n) => line === (n < LINES ? `line ${n + 1} ${filler}` : ''))).toBe(true);
    } finally {
      await node.close();
      await plane.close();
      execFileSync('umount', ['-l', data_dir]);
      await rm(data_dir, { recursive: true, force: true });
    }
  },
);
