/** As long as a role that is assumed by a role may be. */
export const SESSION_SECONDS = 3600;
