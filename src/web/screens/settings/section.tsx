/** A section of a settings page with a heading. */
import type { ReactNode } from 'react';

export function Section({
  title,
  about,
  actions,
  children,
}: {
  title: string;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  return (
    <section className="flex flex-col gap-2">
      <div className="flex min-h-8 flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold text-prose">{title}</h2>
        {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
      </div>
      {about && <p className="text-muted">{about}</p>}
      {children}
    </section>
  );
}
