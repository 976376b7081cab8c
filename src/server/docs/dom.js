/** The only function with which this page creates elements. Text is always text, never markup. */

/**
 * @param {string} tag
 * @param {Record<string, unknown>} [properties] properties of the element; `class`, `role` and names with a dash are attributes
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === 'class' || name === 'role' || name.includes('-')) element.setAttribute(name, String(value));
    else element[name] = value;
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** Text with `code` in backticks. */
export function prose(text) {
  const parts = text.split('`');
  return h('span', {}, ...parts.map((part, i) => (i % 2 === 1 ? h('code', {}, part) : part)));
}
