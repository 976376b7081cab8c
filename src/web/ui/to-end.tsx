import { ArrowDown } from 'lucide-react';
import type { ReactNode } from 'react';
import { belowClass } from './below-class.ts';
import { Button } from './button.tsx';
import { cx } from './cx.ts';

/** A button to the end of a list whose end is out of view. */
export function ToEnd({ onClick, children }: { onClick: () => void; children: ReactNode }) {
  return (
    <div className={cx(belowClass, 'md:right-4')}>
      <Button
        className="min-w-28 md:shadow-overlay"
        icon={<ArrowDown aria-hidden />}
        title="End"
        onClick={onClick}
      >
        {children}
      </Button>
    </div>
  );
}
