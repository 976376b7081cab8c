/** The platform's modifier key, and whether a key press is meant for a text field. */
export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? '');
export const MOD = isMac ? '⌘' : 'Ctrl';

/** Whether the focused element handles the press: a text field, or a dialog, menu or list box. */
export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  if (!target) return false;
  return (
    target.isContentEditable ||
    /^(INPUT|TEXTAREA|SELECT|OPTION)$/.test(target.tagName) ||
    target.closest('[role="dialog"],[role="menu"],[role="listbox"]') !== null
  );
}

/** Whether a dialog or a menu is open above the page. Phones have a hidden dialog, and toasts count as one for screen readers. */
export function isOverlayOpen(): boolean {
  const overlays = document.querySelectorAll(
    ':is([role="dialog"], [role="alertdialog"]):not([aria-modal="false"]), [role="menu"]',
  );
  return [...overlays].some((overlay) => overlay.checkVisibility());
}

export function hasModifier(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.altKey;
}
