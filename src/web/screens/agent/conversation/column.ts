/** The column of a conversation and its prompt field. On wide screens it has gutters for links and times. */
export const COLUMN = 'w-full max-w-[62rem] px-3 md:pr-16 md:pl-8';
