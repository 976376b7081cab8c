/** Sign-in tokens and API tokens. The routes for tokens are part of the accounts feature. */
import type { Core, Feature } from '../feature.ts';
import { Tokens } from './service.ts';

export function openTokens(core: Core): Feature & { tokens: Tokens } {
  const tokens = new Tokens(core);
  return { name: 'tokens', tokens, sweep: () => tokens.sweep(), close: () => tokens.flush() };
}
