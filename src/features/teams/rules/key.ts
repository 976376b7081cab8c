import { problems } from '../../../core/problem.ts';

/** The key of a team, which the names of its tasks begin with: `DEM-1`. */
export const TEAM_KEY = /^[A-Z]{2,5}$/;

/** For names with fewer than two Latin letters. */
const FALLBACK = 'TSK';

/**
 * Derives a key that is not taken from the name: `DEM`, `DEMB`, … `DEMZ`, then `DEAAA`, `DEAAB`, … `findTaken` returns the taken
 * keys that begin with two letters. Throws a 409 if it finds none.
 */
export async function deriveTeamKey(
  name: string,
  findTaken: (start: string) => Promise<readonly string[]>,
): Promise<string> {
  const letters = name
    .normalize('NFKD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '');
  const base = letters.length < 2 ? FALLBACK : letters.slice(0, 3);
  const taken = new Set(await findTaken(base.slice(0, 2)));
  for (const key of candidates(base)) if (!taken.has(key)) return key;
  throw problems.teamKeysTaken();
}

function* candidates(base: string): Generator<string> {
  yield base;
  if (base.length === 3) for (let rank = 1; rank < 26; rank++) yield base + letter(rank);
  for (let place = 0; place < 26 ** 3; place++) {
    yield base.slice(0, 2) + letter(place / 676) + letter(place / 26) + letter(place);
  }
}

function letter(place: number): string {
  return String.fromCharCode(65 + (Math.floor(place) % 26));
}
