/** Under which name a browser keeps the session; apart, because tests put one there too. */
export const SESSION_KEY = 'svc.session';
