/** Guessing of passwords and PINs: how many guesses are checked, and what response times reveal. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '../../src/client/client.ts';
import { Rng } from '../../src/testing/fuzz/rng.ts';
import { ROOT, type TestPlane } from '../../src/testing/plane.ts';
import { sendRequest } from '../../src/testing/send-request.ts';
import { median } from '../figure.ts';
import { endProgram, forEachConcurrently, prepareProgram, withProgram } from '../program.ts';
import { counts, type FaultRow, outcomeOf, Tally, upTo } from './row.ts';

const PASSWORD = 'quite a long password';
const ADDRESSES = 50;
/** The number of guesses from one address that are checked per minute. */
const LOOKED_AT_MAX = 20;
const WRONG = 'invalid username or password';
/** So that requests can have several addresses. */
const BEHIND_PROXY = { SVC_SERVER_BEHIND_PROXY: 'true' };

export const force: FaultRow = {
  number: 41,
  fault: `guessing of passwords from ${ADDRESSES} addresses, and of the PIN`,
  expected: 'slowed down; the PIN is invalidated at the fifth try; the user can still sign in',
  default_n: 10_000,
  run: async (n) => {
    const tally = new Tally();
    await withProgram((plane) => passwords(tally, plane, n), BEHIND_PROXY);
    await pin(tally, Math.min(n, 1_000));
    return tally.outcome();
  },
};

async function passwords(tally: Tally, plane: TestPlane, n: number): Promise<void> {
  const users = ['ada', 'ben', 'cleo'];
  for (const username of users) {
    await plane.client.call('createUser', { body: { username, password: PASSWORD, role: 'user' } });
  }
  const login = (from: string, username: string, password: string) =>
    sendRequest(plane.url, '/api/login', { from, body: { username, password } });
  // Ada has a sign-in from her usual address.
  await login('198.51.100.77', 'ada', PASSWORD);
  const answers: string[] = [];
  const begun_ms = performance.now();
  await forEachConcurrently(upTo(n), 40, async (i) => {
    const { status } = await login(
      `203.0.113.${1 + (i % ADDRESSES)}`,
      users[i % users.length]!,
      `guess ${i}`,
    );
    answers.push(String(status));
    tally.case(status === 401 || status === 429, `a guess: ${status}`);
  });
  const minutes = Math.ceil((performance.now() - begun_ms) / 60_000);
  const looked_at = answers.filter((status) => status === '401').length;
  const bound = ADDRESSES * LOOKED_AT_MAX * minutes;
  tally.check(looked_at <= bound, `${looked_at} guesses were checked, more than ${bound}`);
  tally.measure(`${counts(answers)} in ${((performance.now() - begun_ms) / 1000).toFixed(0)} s`);
  const home = await login('198.51.100.77', 'ada', PASSWORD);
  tally.check(home.status === 200, `a sign-in from an address with a session got ${home.status}`);
  const away = await login('192.0.2.1', 'ben', PASSWORD);
  tally.measure(
    `sign-in during the attack, from an address with a session: ${home.status}; from a new address: ${away.status}`,
  );
  const root = await login('192.0.2.2', ROOT.username, ROOT.password);
  tally.check(root.status === 200, `the sign-in of a user who is not attacked got ${root.status}`);
}

/** Of many concurrent wrong PINs, five are checked. After that, the right one is not accepted either. */
async function pin(tally: Tally, n: number): Promise<void> {
  const plane = await prepareProgram({});
  try {
    await plane.start();
    const anybody = new Client({ url: plane.url });
    const join_file = join(plane.data_dir, 'join.json');
    const { token, pin: right } = JSON.parse(await readFile(join_file, 'utf8')) as {
      token: string;
      pin: string;
    };
    const body = (guess: string) => ({ token, pin: guess, ...ROOT });
    const guesses = upTo(n + 1)
      .map((i) => String(i).padStart(8, '0'))
      .filter((guess) => guess !== right)
      .slice(0, n);
    const answers: string[] = [];
    await forEachConcurrently(guesses, 40, async (guess) => {
      answers.push(await outcomeOf(anybody.call('join', { body: body(guess) })));
    });
    tally.n += n;
    const tried = answers.filter((answer) => answer === 'invalid pin').length;
    tally.check(tried === 5, `${tried} PINs were tried`);
    tally.check(!answers.includes('ok'), 'a wrong PIN was accepted');
    const late = await outcomeOf(anybody.call('join', { body: body(right) }));
    tally.check(late === 'join token expired', `the right PIN afterwards: ${late}`);
    tally.measure(`PIN: ${counts(answers)}; the right one afterwards: ${late}`);
  } finally {
    await endProgram(plane);
  }
}

// --- time -----------------------------------------------------------------------------------------------------------------

/** A larger t is due to chance only once in a thousand times. */
const T_MAX = 3.3;
/** The share of the smallest and of the largest differences that is discarded, because other work interfered. */
const TRIMMED = 0.05;

export const timing: FaultRow = {
  number: 42,
  fault:
    'response times for an existing and an unknown user, and for a PIN with the first or the last digit wrong',
  expected: `no significant difference (|t| of the pairs below ${T_MAX})`,
  default_n: 300,
  run: async (n, seed) => {
    const tally = new Tally();
    await withProgram((plane) => users(tally, plane, n, new Rng(seed)), BEHIND_PROXY);
    await prefixes(tally, n, new Rng(seed));
    return tally.outcome();
  },
};

/** The times of two consecutive responses, in random order. */
interface Pair {
  a: number;
  b: number;
}

/** Each attempt comes from a new address, so that it is checked. */
async function users(tally: Tally, plane: TestPlane, n: number, rng: Rng): Promise<void> {
  const names = upTo(Math.ceil(n / 20)).map((i) => `user-${i}`);
  await forEachConcurrently(names, 4, async (username) => {
    await plane.client.call('createUser', { body: { username, password: PASSWORD, role: 'user' } });
  });
  let tries = 0;
  const attempt = async (username: string) => {
    const i = tries++;
    const from = `10.${1 + (i >> 15)}.${(i >> 7) & 255}.${1 + (i & 127)}`;
    const body = { username, password: 'not this password' };
    const { status, error, took_ms } = await sendRequest(plane.url, '/api/login', { from, body });
    tally.case(status === 401 && error === WRONG, `${status} ${error}`);
    return took_ms;
  };
  const pairs: Pair[] = [];
  for (let i = 0; i < n; i++) {
    const name = rng.pick(names);
    pairs.push(
      await inEitherOrder(
        rng,
        () => attempt(name),
        () => attempt(name.replace('user', 'nope')),
      ),
    );
  }
  compare(tally, 'existing and unknown user', pairs);
}

/** Uses a new challenge after four wrong PINs. */
async function prefixes(tally: Tally, n: number, rng: Rng): Promise<void> {
  const plane = await prepareProgram({});
  try {
    await plane.start();
    let challenge = { token: '', pin: '' };
    const attempt = async (wrong_at: number) => {
      const digits = [...challenge.pin];
      digits[wrong_at] = String((Number(digits[wrong_at]) + 1) % 10);
      const body = { token: challenge.token, pin: digits.join(''), ...ROOT };
      const { status, error, took_ms } = await sendRequest(plane.url, '/api/join', { body });
      tally.case(status === 401 && error === 'invalid pin', `PIN: ${status} ${error}`);
      return took_ms;
    };
    const pairs: Pair[] = [];
    for (let i = 0; i < n; i++) {
      if (i % 2 === 0) {
        // A fifth wrong PIN invalidates the challenge, so that a new one can be created.
        if (i > 0) await attempt(0);
        const { file } = await new Client({ url: plane.url }).call('createJoinChallenge');
        challenge = JSON.parse(await readFile(file, 'utf8'));
      }
      const last = challenge.pin.length - 1;
      pairs.push(
        await inEitherOrder(
          rng,
          () => attempt(0),
          () => attempt(last),
        ),
      );
    }
    compare(tally, 'PIN with the first or the last digit wrong', pairs);
  } finally {
    await endProgram(plane);
  }
}

async function inEitherOrder(rng: Rng, a: () => Promise<number>, b: () => Promise<number>): Promise<Pair> {
  if (rng.chance(0.5)) return { a: await a(), b: await b() };
  const second = await b();
  return { a: await a(), b: second };
}

function compare(tally: Tally, what: string, pairs: readonly Pair[]): void {
  const t = yuen(pairs.map(({ a, b }) => a - b));
  tally.check(Math.abs(t) < T_MAX, `${what}: t = ${t.toFixed(1)}`);
  const [a, b] = [median(pairs.map((pair) => pair.a)), median(pairs.map((pair) => pair.b))];
  tally.measure(
    `${what}: medians ${a.toFixed(2)} and ${b.toFixed(2)} ms, t = ${t.toFixed(2)}, ${pairs.length} pairs`,
  );
}

/** Yuen's test: Student's t for a trimmed mean of zero, with the variance of the winsorized values. */
function yuen(differences: readonly number[]): number {
  const sorted = differences.toSorted((a, b) => a - b);
  const cut = Math.floor(sorted.length * TRIMMED);
  const kept = sorted.slice(cut, sorted.length - cut);
  const [low, high] = [kept[0]!, kept.at(-1)!];
  const winsorized = sorted.map((value) => Math.min(high, Math.max(low, value)));
  const middle = mean(winsorized);
  const variance = winsorized.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (sorted.length - 1);
  return mean(kept) / (Math.sqrt(variance) / ((kept.length / sorted.length) * Math.sqrt(sorted.length)));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
