/**
 * Retired words that are still in names, by module or feature. Remove a word here when you have removed its last name; do not
 * add any.
 */
export const known_words: Record<string, readonly string[]> = {
  bench: ['hear', 'told'],
  scripts: ['asking'],
  'src/acp': ['asking', 'told'],
  'src/events': ['standing', 'told'],
  'src/features/accounts': ['nonsense'],
  'src/features/agents': ['doer'],
  'src/features/conversations': ['asking', 'goes on', 'told'],
  'src/features/elicitations': ['asking', 'told'],
  'src/features/notifications': ['telling', 'told'],
  'src/features/reviews': ['asking'],
  'src/features/runs': ['hear'],
  'src/features/settings': ['told'],
  'src/features/tokens': ['asking'],
  'src/link': ['standing'],
  'src/store': ['told'],
  'src/testing': ['asking', 'door', 'rooms', 'standing', 'told', 'trouble', 'words of'],
  'src/tools': ['told'],
  'src/web': ['asking', 'told'],
  'src/work': ['hear'],
  test: ['asking', 'telling', 'told', 'trouble'],
};
