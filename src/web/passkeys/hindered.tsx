/** Why there are no passkeys on this page, with the way to where there are. */
import type { Hindrance } from './place.ts';

export function Hindered({ hindrance: { words, origin } }: { hindrance: Hindrance }) {
  return (
    <p className="text-muted">
      {words}
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
