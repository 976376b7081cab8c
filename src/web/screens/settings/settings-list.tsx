/** A list of the user's passkeys, tokens or sign-ins, each with its facts and actions. */
import type { ReactNode } from 'react';
import { Ago } from '../../ui/time.tsx';

export function SettingsList({ children }: { children: ReactNode }) {
  return <ul className="rounded-lg border border-line">{children}</ul>;
}

export function SettingsRow({
  name,
  title = name,
  mark,
  about,
  children,
}: {
  name: string;
  title?: string | undefined;
  /** Shown next to the name. */
  mark?: ReactNode;
  about: ReactNode;
  /** The buttons. */
  children: ReactNode;
}) {
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 border-line px-3 py-1.5 not-first:border-t">
      <div className="min-w-0 flex-1">
        <p className="flex min-w-0 gap-2">
          <span className="truncate font-medium" title={title}>
            {name}
          </span>
          {mark}
        </p>
        <div className="text-muted text-sm">{about}</div>
      </div>
      {children}
    </li>
  );
}

export function LastUsed({ at }: { at: string | null }) {
  return at === null ? (
    'never used'
  ) : (
    <>
      used <Ago at={at} />
    </>
  );
}
