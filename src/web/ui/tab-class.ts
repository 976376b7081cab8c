/** The looks of tabs, so that links to other pages can look like them: the router marks the current one as `active`. */
export const barClass =
  'fade-x flex max-w-full gap-4 overflow-x-auto border-line border-b [scrollbar-width:none] max-md:gap-3';

export const tabClass =
  'tab inline-flex h-8 shrink-0 items-center gap-1.5 whitespace-nowrap border-transparent border-b-2 text-muted -outline-offset-2 transition-colors hover:text-text data-active:border-accent data-active:font-medium data-active:text-text [&.active]:border-accent [&.active]:font-medium [&.active]:text-text pointer-coarse:h-11';
