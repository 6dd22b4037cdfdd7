/** Maximum duration of a chained role session at AWS. */
export const SESSION_SECONDS = 3600;
