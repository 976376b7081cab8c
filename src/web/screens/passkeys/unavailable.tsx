/** Why passkeys do not work on this page, with a link to where they do. */
import type { Unavailable } from './availability.ts';

export function PasskeyUnavailable({ reason: { text, origin } }: { reason: Unavailable }) {
  return (
    <p className="text-muted">
      {text}
      {origin && (
        <>
          {' '}
          <a href={`${origin}${location.pathname}${location.search}`} className="break-all underline">
            {origin}
          </a>
        </>
      )}
    </p>
  );
}
