/** The first and the largest paint of a page with an empty cache, on this machine and on a distant phone. */
import { sleep } from '../../../src/base/async.ts';
import { type Figure, median, type Row } from '../../figure.ts';
import { silentAgents } from '../../program.ts';
import { layoutShift } from '../shifts.ts';
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
    'The first and the largest contentful paint (FCP and LCP) of a page that a browser opens with an empty ' +
    'cache, with a dozen live agents, and its layout shift (CLS) on the phone. One measurement is on this machine. The other has the screen of a phone, a processor ' +
    `${CPU_SLOWDOWN} times slower, and the network that the browser’s developer tools call Slow 4G (562 ms ` +
    'for every request, 1.44 Mbit/s). The limit is `/healthz`, the service’s constant answer, as the browser ' +
    'shows it. Medians.',
  bottleneck:
    'A request takes 562 ms on that network. The first paint needs the page and its styles, which are requested ' +
    'after it. What the page contains by then is the app without data; it becomes the app when the scripts ' +
    'have arrived and run: they occupy the network until 1.7 s after the page has arrived, and nine tenths of the ' +
    'largest one are React, the router and the query cache. Tried: loading the fonts after the first render ' +
    '(no gain: 2.85 s and 2.86 s), because they already arrive after the scripts.',
  run: ({ quick }) =>
    withStage(async (stage) => {
      await silentAgents(stage.plane, 12);
      const figures: Figure[] = [];
      for (const slow of [false, true]) {
        const rounds = quick ? 1 : slow ? 2 : 3;
        const on = slow ? ', slow phone' : '';
        const bare = await paintsOf(stage, BARE, slow, rounds);
        for (const place of places) {
          const paints = await paintsOf(stage, place, slow, rounds);
          const limit_is = '/healthz';
          figures.push(
            {
              what: `first paint of ${place.path}${on}`,
              unit: 's',
              ...{ value: paints.first, limit: bare.first, limit_is },
              goal: { of: 'value', at_most: slow ? 2.2 : 0.8 },
            },
            {
              what: `largest paint of ${place.path}${on}`,
              unit: 's',
              ...{ value: paints.largest, limit: bare.largest, limit_is },
              goal: { of: 'value', at_most: slow ? 2.5 : 0.8 },
            },
          );
          if (slow) {
            const goal = { of: 'value', at_most: 0.02 } as const;
            figures.push({ what: `layout shift of ${place.path}${on}`, unit: '', value: paints.shift, goal });
          }
        }
      }
      return figures;
    }),
};

interface Paints {
  /** Seconds. */
  first: number;
  largest: number;
  /** CLS. */
  shift: number;
}

async function paintsOf(stage: Stage, place: Place, slow: boolean, rounds: number): Promise<Paints> {
  const seen: Paints[] = [];
  for (let round = 0; round < rounds; round++) seen.push(await paintsOnce(stage, place, slow));
  const medianOf = (key: keyof Paints) => median(seen.map((paints) => paints[key]));
  return { first: medianOf('first'), largest: medianOf('largest'), shift: medianOf('shift') };
}

async function paintsOnce(
  stage: Stage,
  { path, signed_in, visible_text: words }: Place,
  slow: boolean,
): Promise<Paints> {
  const screen = slow ? 'phone' : 'desk';
  const seen = await (signed_in ? stage.openSignedIn({ screen }) : stage.open({ screen }));
  if (slow) await slowDown(seen);
  // The address that the service prints. At others, the sign-in page also says where passkeys work.
  const origin = signed_in ? stage.plane.url : stage.plane.url.replace('127.0.0.1', 'localhost');
  await seen.goto(origin + path);
  await seen.has('body', words);
  // A larger paint may follow.
  await sleep(slow ? 2_000 : 500);
  const [first, largest] = [await seen.probe('firstPaint'), await seen.probe('largestPaint')];
  const shift = layoutShift(await seen.probe('shifts'));
  if (first === 0 || largest === 0) throw new Error(`the browser reported no paint of ${path}`);
  await seen.close();
  return { first: first / 1000, largest: largest / 1000, shift };
}

async function slowDown({ page }: OpenPage): Promise<void> {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.emulateNetworkConditions', SLOW_4G);
  await cdp.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN });
}
