// Tests wait for facts, never for time to pass: each wait names what it waits for, and gives up
// loudly.

/** Slow builds (sanitizers) get more time; the tests stay the same. */
const patience = Number(process.env.SLUICE_E2E_PATIENCE ?? 1);

const kPollMilliseconds = 10;

/** A bound for something that takes far less when all is well. */
export function seconds(count) {
  return count * 1000 * patience;
}

/**
 * Asks `probe` until it gives something truthy, and returns that. `what` completes the sentence
 * "waited in vain until ...". A probe that throws is asked again.
 */
export async function waitUntil(what, probe, timeout = seconds(20)) {
  const end = Date.now() + timeout;
  let last;
  while (Date.now() < end) {
    try {
      const value = await probe();
      if (value) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, kPollMilliseconds));
  }
  throw new Error(`waited in vain until ${what}; the last answer was ${last}`);
}

/** Fails if `promise` takes longer. */
export async function within(what, promise, timeout = seconds(20)) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took too long: ${what}`)), timeout);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
