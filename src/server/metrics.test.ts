import { expect, test, vi } from 'vitest';
import { limits } from './limits.ts';
import { Metrics } from './metrics.ts';

test('a gauge that cannot be read has no value, and the others keep theirs', async () => {
  const metrics = new Metrics();
  let read = (): number | null => 1;
  metrics.gauge('one', 'Without labels.', () => read());
  metrics.gauges('many', 'With labels.', ['label'], async () => [
    { labels: { label: 'a' }, value: read() ?? 2 },
  ]);
  metrics.gauge('other', 'Always there.', () => 3);
  const values = async () => (await metrics.text()).match(/^(one|many|other).*$/gm);
  expect(await values()).toEqual(['one 1', 'many{label="a"} 1', 'other 3']);
  read = () => {
    throw new Error('the database does not answer');
  };
  expect(await values()).toEqual(['other 3']);
  read = () => null;
  expect(await values()).toEqual(['many{label="a"} 2', 'other 3']);
  read = () => 4;
  expect(await values()).toEqual(['one 4', 'many{label="a"} 4', 'other 3']);
});

test('a gauge whose value does not arrive in time has none', async () => {
  vi.spyOn(limits, 'metric_read_ms_max', 'get').mockReturnValue(20 as never);
  const metrics = new Metrics();
  metrics.gauge('slow', 'Never read.', () => new Promise<number>(() => {}));
  metrics.gauge('other', 'Always there.', () => 3);
  expect((await metrics.text()).match(/^(slow|other).*$/gm)).toEqual(['other 3']);
  vi.restoreAllMocks();
});
