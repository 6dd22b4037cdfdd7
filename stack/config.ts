import { type Config, loadConfig } from '../platform/config/config.js';

/**
 * The configuration of a program that a person may start by hand. At a terminal it logs what goes wrong, unless ZEROFLEET_LOG_LEVEL
 * says otherwise.
 * @throws ZerofleetError `invalid_configuration`
 */
export function configFor(env: NodeJS.ProcessEnv, log: { isTTY?: boolean }): Config {
  // An empty variable counts as unset.
  const isQuiet = log.isTTY === true && !env.ZEROFLEET_LOG_LEVEL;
  return loadConfig(isQuiet ? { ...env, ZEROFLEET_LOG_LEVEL: 'warn' } : env);
}
