import { type ButtonHTMLAttributes, type MouseEvent, type ReactNode, type Ref, use } from 'react';
import { cx } from './cx.ts';
import { InSheet } from './sheet.ts';

type ButtonVariant = 'primary' | 'plain' | 'quiet' | 'danger';

const looks: Record<ButtonVariant, string> = {
  primary: 'bg-accent text-on-accent border-transparent hover:brightness-110 font-medium',
  plain: 'bg-button border-button-line hover:bg-button-hover',
  quiet: 'border-transparent hover:bg-surface text-muted hover:text-text',
  danger: 'bg-button border-failed/40 text-failed hover:bg-removed',
};

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  variant?: ButtonVariant;
  /** Shown before the label. */
  icon?: ReactNode;
  /** The action is in progress: the button does nothing, but stays legible and keeps the focus. */
  busy?: boolean | undefined;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  variant = 'plain',
  icon,
  busy,
  className,
  children,
  disabled,
  ...rest
}: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled && !busy}
      {...(busy && { 'aria-busy': true, 'aria-disabled': true, onClick: ignore })}
      className={buttonClass(variant, cx(busy && 'opacity-70', className))}
    >
      {icon}
      {children}
    </button>
  );
}

/** A press of a button that submits a form would do so without a handler. */
function ignore(event: MouseEvent): void {
  event.preventDefault();
  event.stopPropagation();
}

/** The classes of a button, so that a link can look like one. */
export function buttonClass(variant: ButtonVariant = 'plain', more?: string): string {
  return cx(
    'tap inline-flex shrink-0 items-center justify-center gap-1.5 rounded-md border px-2.5 text-base whitespace-nowrap',
    'transition-colors disabled:opacity-50 [&_svg]:size-4',
    looks[variant],
    more,
  );
}

/**
 * The button that creates something: on phones a round one within reach of the thumb, with its label for screen readers only. It
 * is out of the way while the user scrolls down (`useScrolledDown`), except for the keyboard. Lists end with space for it. `--below-screen`: the height
 * of what is between the screen and the bar.
 */
export const floatingClass = buttonClass(
  'primary',
  'max-md:transition-[translate,opacity] max-md:in-[[data-scrolled=down]]:not-focus-visible:pointer-events-none ' +
    'max-md:in-[[data-scrolled=down]]:not-focus-visible:translate-y-4 max-md:in-[[data-scrolled=down]]:not-focus-visible:opacity-0 ' +
    'max-md:-translate-x-1/2 max-md:fixed max-md:left-1/2 max-md:bottom-[calc(env(safe-area-inset-bottom)+64px+var(--below-screen,0px))] max-md:z-20 max-md:size-12 max-md:rounded-full max-md:px-0 max-md:shadow-overlay max-md:[&_svg]:size-5',
);

/**
 * A button with only an icon. Its label is read by screen readers and shown as a tooltip. In the sheet of a phone's screen, the
 * label is next to the icon.
 */
export function IconButton({ label, className, ...rest }: Omit<ButtonProps, 'children'> & { label: string }) {
  if (use(InSheet)) {
    return (
      <Button variant="quiet" {...rest} className={className}>
        {label}
      </Button>
    );
  }
  return (
    <Button
      variant="quiet"
      {...rest}
      aria-label={label}
      title={label}
      className={cx('min-w-7 px-1 pointer-coarse:min-w-11', className)}
    />
  );
}
