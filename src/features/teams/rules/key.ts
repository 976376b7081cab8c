/** The key of a team, which the names of its tasks begin with: `DEM-1`. */
export const TEAM_KEY = /^[A-Z]{2,5}$/;

/** For names with fewer than two Latin letters. */
const FALLBACK = 'TSK';

/** Derives a key that is not taken from the name: `DEM`, `DEMB`, … `DEMZ`, then `DEAAA`, `DEAAB`, … */
export async function deriveTeamKey(
  name: string,
  isTaken: (key: string) => Promise<boolean>,
): Promise<string> {
  for (const key of candidates(name)) if (!(await isTaken(key))) return key;
  throw new Error('all team keys are taken');
}

function* candidates(name: string): Generator<string> {
  const letters = name
    .normalize('NFKD')
    .toUpperCase()
    .replace(/[^A-Z]/g, '');
  const base = letters.length < 2 ? FALLBACK : letters.slice(0, 3);
  yield base;
  if (base.length === 3) for (let rank = 1; rank < 26; rank++) yield base + letter(rank);
  for (let place = 0; place < 26 ** 3; place++) {
    yield base.slice(0, 2) + letter(place / 676) + letter(place / 26) + letter(place);
  }
}

function letter(place: number): string {
  return String.fromCharCode(65 + (Math.floor(place) % 26));
}
