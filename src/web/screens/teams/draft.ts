/** The draft of a team's definition, as it is stored (pure). */

export interface Saving {
  text: string;
  /** The version of the team that it changes; null for a new team. */
  version: number | null;
  /** Identifies one draft; a new draft gets a new id. */
  id: string;
}

export function toDraft({ text, version, id }: Saving): string {
  return JSON.stringify({ version, text, id } satisfies Saving);
}

/** Null if there is no draft, or if it is malformed. */
export function readDraft(held: string): Saving | null {
  if (held === '') return null;
  try {
    const { text, version, id } = JSON.parse(held) as Partial<Saving>;
    if (typeof text !== 'string') return null;
    return {
      text,
      version: typeof version === 'number' ? version : null,
      // Earlier releases stored none.
      id: typeof id === 'string' ? id : '',
    };
  } catch {
    return null;
  }
}

/** What remains of a draft after a text was saved as this version: changes that were made meanwhile; empty if there are none. */
export function unsaved(held: string, saved: string, version: number): string {
  const draft = readDraft(held);
  return draft === null || draft.text === saved ? '' : toDraft({ ...draft, version });
}

/**
 * The drafts after a team was created from `sent`. `rest`: a draft of that team with the changes made since; empty if there are
 * none. `next`: the draft of a new team, if the user has begun another one since; otherwise empty.
 */
export function afterCreation(held: string, sent: Saving, version: number): { rest: string; next: string } {
  const is_other = (readDraft(held)?.id ?? sent.id) !== sent.id;
  return is_other ? { rest: '', next: held } : { rest: unsaved(held, sent.text, version), next: '' };
}
