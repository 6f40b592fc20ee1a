package rmatest

// RaceEnabled is raceEnabled for the tests of the suite.
const RaceEnabled = raceEnabled
