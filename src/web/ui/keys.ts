/** The platform's modifier key, and whether a key press is meant for a text field. */
export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? '');
export const MOD = isMac ? '⌘' : 'Ctrl';

/** Without a time: a press now. */
type Press = Pick<KeyboardEvent, 'target'> & Partial<Pick<KeyboardEvent, 'timeStamp'>>;

/** After this pause, a press is no longer meant for the text field that has disappeared. */
const STILL_TYPING_MS = 1_500;
/** The field in which a key was pressed last, and when. */
let typed: { field: HTMLElement; at: number } | null = null;

globalThis.document?.addEventListener('keydown', noteTyping, { capture: true });
globalThis.document?.addEventListener('pointerdown', () => (typed = null), { capture: true });

function noteTyping(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  // They also remove fields, and what is pressed next is meant for the page.
  const leaves = /^(Enter|Escape|Tab)$/.test(event.key) && !isComposing(event);
  if (leaves) typed = null;
  else if (isField(target)) typed = { field: target, at: event.timeStamp };
  else if (typed !== null && continuesTyping(event)) typed.at = event.timeStamp;
  else typed = null;
}

/** Whether the field in which the user is typing has just disappeared, for example because somebody else has answered. */
function continuesTyping({ timeStamp: at = performance.now() }: Press): boolean {
  return typed !== null && !typed.field.isConnected && at - typed.at < STILL_TYPING_MS;
}

function isField({ isContentEditable, tagName }: HTMLElement): boolean {
  return isContentEditable || /^(INPUT|TEXTAREA)$/.test(tagName);
}

/** Whether the press is not meant for the page: the focused element is a text field, or a dialog, menu or list box, or was one. */
export function isTyping(event: Press): boolean {
  const target = event.target as HTMLElement | null;
  if (!target) return false;
  return (
    isField(target) ||
    /^(SELECT|OPTION)$/.test(target.tagName) ||
    target.closest('[role="dialog"],[role="menu"],[role="listbox"]') !== null ||
    continuesTyping(event)
  );
}

/** Whether a dialog or a menu is open above the page. Phones have a hidden dialog, and toasts count as one for screen readers. */
export function isOverlayOpen(): boolean {
  const overlays = document.querySelectorAll(
    ':is([role="dialog"], [role="alertdialog"]):not([aria-modal="false"]), [role="menu"]',
  );
  return [...overlays].some((overlay) => overlay.checkVisibility());
}

/**
 * Whether a key is pressed with Ctrl, Alt or ⌘. Not if the modifier only types a punctuation character: many keyboards type
 * brackets with AltGr, which Windows reports as Ctrl and Alt, or with Option on a Mac.
 */
export function hasModifier(event: KeyboardEvent): boolean {
  const { key, ctrlKey, metaKey, altKey } = event;
  const is_typed =
    /^[!-/:-@[-`{-~]$/.test(key) && (event.getModifierState('AltGraph') || (isMac && altKey && !ctrlKey));
  return metaKey || (!is_typed && (ctrlKey || altKey));
}

/**
 * Whether the key belongs to text that is still composed with an input method, such as Enter to confirm a word. Safari sends
 * that key after the composition, and only its code says so.
 */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

/** Whether the key sends a form: Enter with Ctrl or ⌘. */
export function isModEnter(event: KeyboardEvent): boolean {
  return event.key === 'Enter' && (event.metaKey || event.ctrlKey) && !isComposing(event);
}
