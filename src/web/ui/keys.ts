/** Keys as people see them on their machine, and whether a key press is meant for a text field. */
export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? '');
export const MOD = isMac ? '⌘' : 'Ctrl';

/** Whether the press belongs to what has the focus: text is being written, or something is open over the page. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (!target) return false;
  return (
    target.isContentEditable ||
    /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ||
    target.closest('[role="dialog"],[role="menu"],[role="listbox"]') !== null
  );
}

export function hasModifier(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}
