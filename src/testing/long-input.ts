/**
 * Long texts for tests that parsing takes linear time, which is milliseconds. With a careless regular expression, it takes
 * quadratic time, which is many minutes and exceeds the time limit of a test.
 */
const LENGTH = 150_000;
const PUMPS = [
  ...[
    '\r',
    '\n',
    '\t',
    ' ',
    '`',
    '~',
    '-',
    '.',
    '@',
    '0',
    'a',
    'é',
    '/',
    '=',
    '\x1b',
    '\x90',
    '\x9d',
    '\u200d',
    'а',
  ],
  ...[
    '\x1b[',
    '\x1b[0;',
    '\x1b]8;',
    '\t\r',
    '\r ',
    'a\u0301',
    'aа',
    '![',
    '](',
    ')!',
    'https://a.',
    '\\"',
    '\\[',
    'k3',
    '<a>',
    '*a_',
    '- a\n  - ',
  ],
];
/** What precedes and follows what is repeated. */
export const AROUND = [
  ['', ''],
  ['', '\0'],
  ['https://a/', ''],
  ['\x1b[', ''],
  ['', 'x'],
  ['', '\n'],
  ['', '\x1bc'],
] as const;

/** Calls `apply` with every kind of long text. */
export function applyToLongTexts(
  apply: (text: string) => unknown,
  around: readonly (readonly [start: string, end: string])[] = AROUND,
): void {
  for (const pump of PUMPS) {
    const long = pump.repeat(LENGTH / pump.length);
    for (const [start, end] of around) apply(start + long + end);
  }
}
