/** The version of the package; Vite inserts it. */
declare const __SVC_VERSION__: string;
