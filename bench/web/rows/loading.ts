/** The loading time of a page with an empty cache, on this machine and on a distant phone. */
import { sleep } from '../../../src/base/async.ts';
import { type Figure, median, type Row } from '../../figure.ts';
import { silentAgents } from '../../program.ts';
import { type OpenPage, type Stage, withStage } from '../stage.ts';

/** The throttling of "Slow 4G" in the browser's developer tools. */
const SLOW_4G = {
  offline: false,
  latency: 562.5,
  downloadThroughput: (1.6e6 / 8) * 0.9,
  uploadThroughput: (750e3 / 8) * 0.9,
};
const CPU_SLOWDOWN = 4;

interface Place {
  path: string;
  /** Without a session, only the sign-in page can be loaded. */
  signed_in: boolean;
  /** A text that is visible once the page is complete. */
  visible_text: string;
}

const places: Place[] = [
  { path: '/login', signed_in: false, visible_text: 'Sign in' },
  { path: '/agents', signed_in: true, visible_text: 'silent 0' },
];
const BARE: Place = { path: '/healthz', signed_in: false, visible_text: '{' };

export const loading: Row = {
  name: 'loading',
  how:
    'The largest contentful paint (LCP) of a page that a browser opens with an empty cache, with a dozen live ' +
    'agents. One measurement is on this machine. The other has the screen of a phone, a processor ' +
    `${CPU_SLOWDOWN} times slower, and the network that the browser’s developer tools call Slow 4G (562 ms ` +
    'for every request, 1.44 Mbit/s). The limit is `/healthz`, the service’s constant answer, as the browser ' +
    'shows it. Medians.',
  bottleneck:
    'A request takes 562 ms on that network, and the scripts are requested after the page. They take 0.9 s to ' +
    'load and 0.4 s to run, most of it in React and the router. Their requests are sent while they load.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      await silentAgents(stage.plane, 12);
      const figures: Figure[] = [];
      for (const slow of [false, true]) {
        const rounds = quick ? 1 : slow ? 2 : 3;
        const limit = await medianOf(rounds, () => paintOf(stage, BARE, slow));
        for (const place of places) {
          figures.push({
            what: `largest paint of ${place.path}${slow ? ', slow phone' : ''}`,
            unit: 's',
            value: await medianOf(rounds, () => paintOf(stage, place, slow)),
            ...{ limit, limit_is: '/healthz' },
            goal: { of: 'value', at_most: slow ? 2.5 : 0.8 },
          });
        }
      }
      return figures;
    }),
};

async function medianOf(rounds: number, measure: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let round = 0; round < rounds; round++) values.push(await measure());
  return median(values);
}

/** The time of the largest contentful paint in seconds. */
async function paintOf(
  stage: Stage,
  { path, signed_in, visible_text: words }: Place,
  slow: boolean,
): Promise<number> {
  const screen = slow ? 'phone' : 'desk';
  const seen = await (signed_in ? stage.openSignedIn({ screen }) : stage.open({ screen }));
  if (slow) await slowDown(seen);
  await seen.goto(stage.plane.url + path);
  await seen.has('body', words);
  // A larger paint may follow.
  await sleep(slow ? 2_000 : 500);
  const ms = await seen.probe('largestPaint');
  if (ms === 0) throw new Error(`the browser reported no paint of ${path}`);
  await seen.close();
  return ms / 1000;
}

async function slowDown({ page }: OpenPage): Promise<void> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.emulateNetworkConditions', SLOW_4G);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
}
