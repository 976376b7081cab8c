/** The list of keyboard shortcuts. */
import { Kbd } from '../ui/kbd.tsx';
import { useAppearance } from './appearance.ts';
import { keyTable } from './key-table.ts';

export function KeySheet() {
  const { shortcuts: single } = useAppearance();
  return (
    <div className="grid gap-x-8 gap-y-4 sm:grid-cols-2">
      {keyTable.map(({ title, rows }) => (
        <section key={title}>
          <h3 className="pb-1 font-medium">{title}</h3>
          <dl className="flex flex-col">
            {rows.map(({ keys, does, always }) => (
              <div key={does} className="flex items-center justify-between gap-3 border-line border-t py-1">
                <dt className={single || always ? '' : 'text-muted line-through'}>{does}</dt>
                <dd className="flex gap-1">
                  {keys.map((key, at) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: the same key twice is two presses
                    <Kbd key={at}>{key}</Kbd>
                  ))}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}
