/** The project of the first key, and of every record of the versions that knew no projects. */
export const DEFAULT_PROJECT = 'default';
