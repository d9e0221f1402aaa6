"""An imitation of the Objective-C runtime and of the parts of Foundation that are used."""
