import { type Config, loadConfig } from '../../platform/config/config.js';

/**
 * Configuration of a program that a user may start by hand. At a terminal it logs only warnings and errors, unless
 * ZEROFLEET_LOG_LEVEL is set.
 * @throws ZerofleetError `invalid_configuration`
 */
export function configFor(env: NodeJS.ProcessEnv, log: { isTTY?: boolean }): Config {
  // An empty variable counts as unset.
  const isQuiet = log.isTTY === true && !env.ZEROFLEET_LOG_LEVEL;
  return loadConfig(isQuiet ? { ...env, ZEROFLEET_LOG_LEVEL: 'warn' } : env);
}
