/** Accessibility of pages: what axe finds, in themes and at widths, and whether something scrolls horizontally. */
import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';

interface Finding {
  id: string;
  nodes: { target: string[]; failureSummary: string }[];
}

export const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
/** Rules that depend only on colors. */
export const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** A look of a page, and the rules that are checked in it. */
export interface Variant {
  colorScheme: 'light' | 'dark';
  width: number;
  rules: string[];
}

/** The violations that axe finds, one per line. */
async function findings(page: Page, runOnly: string[]): Promise<string[]> {
  const options = JSON.stringify({ runOnly, resultTypes: ['violations'] });
  const { violations } = (await page.evaluate(`axe.run(document, ${options})`)) as { violations: Finding[] };
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ target, failureSummary }) => `${id}: ${target.join(' ')}: ${failureSummary.split('\n').at(-1)}`,
    ),
  );
}

/** Makes colors change at once, because a color in transition belongs to neither theme. */
const WITHOUT_TRANSITIONS = `{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('* { transition: none !important; }');
  document.adoptedStyleSheets.push(sheet);
}`;

/** Required once after a page was loaded. */
export async function preparePage(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  await page.evaluate(WITHOUT_TRANSITIONS);
}

/** The problems of a prepared page, by look. */
export async function problemsOf(
  page: Page,
  variants: readonly Variant[],
): Promise<Record<string, string[]>> {
  const wrong: Record<string, string[]> = {};
  for (const { colorScheme, width, rules } of variants) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe(colorScheme);
    const found = await findings(page, rules);
    const sideways = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    if (sideways > 0) found.push(`scrolls sideways by ${sideways} px`);
    if (found.length > 0) wrong[`${colorScheme}, ${width} px`] = found;
  }
  return wrong;
}
