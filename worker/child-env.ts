/** Secrets that only the agent needs; a child that is taken over must not have them. */
const AGENT_ONLY = ['ZEROFLEET_API_KEY', 'ZEROFLEET_REDIS_URL'];

/** The environment of a child process: this one's without what is none of its business. */
export function childEnv(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !AGENT_ONLY.includes(name));
  return Object.fromEntries(entries);
}
