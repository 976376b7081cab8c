/** What passkeys add to the web UI: signing in, the offer after the first sign-in, and a tab of the settings. */
import { lazy } from 'react';
import { part, type WebFeature } from '../../feature.ts';

export const passkeys: WebFeature = {
  settings: {
    passkeys: { label: 'Passkeys', part: part(async () => (await import('./settings.tsx')).Passkeys) },
  },
  // Loaded after the form, so that neither its loading nor its failure delays a sign-in with a password.
  sign_in: lazy(() => import('./sign-in.tsx').catch(() => ({ default: () => null }))),
  offer: async () => {
    const [{ passkeysWork }, { Offer }] = await Promise.all([
      import('./availability.ts'),
      import('./offer.tsx'),
    ]);
    return (await passkeysWork()) ? Offer : null;
  },
};
